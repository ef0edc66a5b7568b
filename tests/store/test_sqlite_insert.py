"""Any number of rows, in a few statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, Text
from sqlalchemy.dialects import sqlite

from troyproxy.store.sqlite_insert import MOST, SqliteInsert

THINGS = Table("things", MetaData(), Column("id", Integer, primary_key=True), Column("name", Text))
OLD = (2, "old")


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        opened.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT)")
        yield opened


def found(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute("SELECT id, name FROM things ORDER BY id").fetchall()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, MOST - 1, MOST, MOST + 1, 2 * MOST + 5])
def test_every_row_is_inserted_and_counted(connection: sqlite3.Connection, count: int) -> None:
    rows = [(number, f"n{number}") for number in range(count)]
    assert SqliteInsert(sqlite.insert(THINGS)).run(connection, rows) == count
    assert found(connection) == rows


def test_five_hundred_rows_take_a_dozen_statements_at_most(connection: sqlite3.Connection) -> None:
    said: list[str] = []
    connection.set_trace_callback(said.append)
    SqliteInsert(sqlite.insert(THINGS)).run(connection, [(number, "") for number in range(500)])
    assert len(said) <= 12


def test_what_is_there_already_is_left_and_not_counted(connection: sqlite3.Connection) -> None:
    insert = SqliteInsert(sqlite.insert(THINGS).on_conflict_do_nothing())
    insert.run(connection, [OLD])
    assert insert.run(connection, [(number, "new") for number in range(4)]) == 3
    assert found(connection)[2] == OLD


def test_a_conflict_can_change_what_is_there(connection: sqlite3.Connection) -> None:
    statement = sqlite.insert(THINGS)
    insert = SqliteInsert(
        statement.on_conflict_do_update(index_elements=["id"], set_={"name": statement.excluded.name})
    )
    insert.run(connection, [OLD])
    insert.run(connection, [(2, "new"), (3, "new")])
    assert found(connection) == [(2, "new"), (3, "new")]


def test_the_order_of_a_row_is_that_of_the_columns() -> None:
    assert SqliteInsert(sqlite.insert(THINGS)).names == ("id", "name")


def test_a_column_can_be_left_to_the_database(connection: sqlite3.Connection) -> None:
    insert = SqliteInsert(sqlite.insert(THINGS), without="id")
    insert.run(connection, [("a",), ("b",)])
    assert (insert.names, found(connection)) == (("name",), [(1, "a"), (2, "b")])
