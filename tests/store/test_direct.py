"""Connections of our own to a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from troyproxy.store.direct import Direct


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "things.db")) as made:
        made.execute("CREATE TABLE things (name TEXT UNIQUE)")
    return tmp_path / "things.db"


@pytest.fixture
def direct(file: Path) -> Iterator[Direct]:
    engine = create_engine(f"sqlite:///{file}", connect_args={"isolation_level": None, "timeout": 0.01})
    opened = Direct(engine)
    yield opened
    opened.close()


def names(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as reader:
        return [name for (name,) in reader.execute("SELECT name FROM things ORDER BY rowid")]


def insert(connection: sqlite3.Connection, *given: str) -> None:
    connection.executemany("INSERT INTO things VALUES (?)", [(name,) for name in given])


def test_what_is_done_is_committed(direct: Direct, file: Path) -> None:
    direct.run(lambda connection: insert(connection, "a"))
    direct.run(lambda connection: insert(connection, "b"))
    assert names(file) == ["a", "b"]


def test_what_fails_is_rolled_back_and_the_next_is_committed(direct: Direct, file: Path) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        direct.run(lambda connection: insert(connection, "a", "a"))
    direct.run(lambda connection: insert(connection, "b"))
    assert names(file) == ["b"]


def test_a_lock_of_somebody_else_is_an_error_and_its_end_is_none(direct: Direct, file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            direct.run(lambda connection: insert(connection, "a"))
    direct.run(lambda connection: insert(connection, "b"))
    assert names(file) == ["b"]


def test_it_can_be_used_again_after_it_was_closed(direct: Direct, file: Path) -> None:
    direct.run(lambda connection: insert(connection, "a"))
    direct.close()
    direct.close()
    direct.run(lambda connection: insert(connection, "b"))
    assert names(file) == ["a", "b"]


def test_a_value_is_read_as_things_stand_now(direct: Direct, file: Path) -> None:
    counted = [direct.value("SELECT count(*) FROM things")]
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("INSERT INTO things VALUES ('a')")
        counted.append(direct.value("SELECT count(*) FROM things"))
        other.execute("BEGIN IMMEDIATE")
        counted.append(direct.value("SELECT count(*) FROM things"))
    assert counted == [0, 1, 1]


def test_a_value_that_is_not_there_is_an_error_and_the_next_is_read(direct: Direct) -> None:
    with pytest.raises(sqlite3.DatabaseError, match="no such row"):
        direct.value("SELECT name FROM things")
    assert direct.value("SELECT 1") == 1
