from __future__ import annotations

import sqlite3
from contextlib import closing

from tests.cli.conftest import Shell
from troyproxy.store import migrations


def test_a_new_database_is_at_no_revision(shell: Shell) -> None:
    assert shell("db", "current", "--json").json() == {"current": None, "head": migrations.head()}
    assert shell("db", "current").out == f"none, not {migrations.head()}\n"


def test_an_upgrade_brings_it_to_the_head(shell: Shell) -> None:
    assert shell("db", "upgrade").out == f"{migrations.head()}\n"
    assert shell("db", "current").out == f"{migrations.head()} (head)\n"


def test_a_downgrade_to_base_leaves_nothing(shell: Shell) -> None:
    shell("db", "upgrade")
    assert shell("db", "downgrade", "base").out == "none\n"


def test_check_says_that_an_upgraded_database_fits(shell: Shell) -> None:
    shell("db", "upgrade")
    assert "fits this version" in shell("db", "check").out
    assert shell("db", "check", "--json").json()["ok"] is True


def test_check_fails_with_the_remedy(shell: Shell) -> None:
    done = shell("db", "check")
    assert (done.status, done.out) == (1, "")
    assert done.err == (
        f"troyproxy: the database is at revision none, not {migrations.head()}: run `troyproxy db upgrade`\n"
    )


def test_check_names_what_something_else_changed(shell: Shell) -> None:
    shell("db", "upgrade")
    with closing(sqlite3.connect(shell.folder / "data" / "troy.db")) as connection:
        connection.execute("CREATE TABLE stray (id INTEGER, " + ", ".join(f"c{i} INTEGER" for i in range(200)) + ")")
    done = shell("db", "check")
    assert (done.status, "remove_table" in done.err, "stray" in done.err) == (1, True, True)
    assert len(done.err) < 300


def test_a_revision_that_does_not_exist_is_an_error(shell: Shell) -> None:
    done = shell("db", "upgrade", "nonsense")
    assert done.status == 1
    assert "cannot migrate the database" in done.err
