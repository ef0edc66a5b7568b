from __future__ import annotations

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
    assert "run `troyproxy db upgrade`" in done.err


def test_a_revision_that_does_not_exist_is_an_error(shell: Shell) -> None:
    done = shell("db", "upgrade", "nonsense")
    assert done.status == 1
    assert "cannot migrate the database" in done.err
