from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest

from tests.cli.conftest import Shell

SECRET = re.compile(r"sk-troy-[0-9a-f]{48}")


def test_the_secret_is_all_that_stands_on_standard_output(shell: Shell) -> None:
    made = shell("keys", "create", "ci")
    assert SECRET.fullmatch(made.out.strip())
    assert "not shown again" in made.err


def test_the_database_has_the_hash_only(shell: Shell) -> None:
    secret = shell("keys", "create", "ci").out.strip()
    with closing(sqlite3.connect(shell.folder / "data" / "troy.db")) as database:
        dump = "\n".join(database.iterdump())
    assert "'ci'" in dump
    assert secret not in dump
    assert secret.removeprefix("sk-troy-") not in dump


def test_a_key_is_listed_as_it_was_made(shell: Shell) -> None:
    made = shell(
        *("keys", "create", "ci", "--models", "daily", "--models", "groq/*"),
        *("--provider", "demo", "--expires", "2999-01-31T12:00:00Z", "--json"),
    ).json()
    assert SECRET.fullmatch(made.pop("key"))
    assert shell("keys", "list", "--json").json() == [made]
    assert (made["models"], made["provider"], made["expires"]) == (["daily", "groq/*"], "demo", "2999-01-31T12:00:00Z")
    assert (made["state"], made["origin"]) == ("valid", "database")


def test_the_list_is_a_table_without_secrets(shell: Shell) -> None:
    secret = shell("keys", "create", "ci").out.strip()
    listed = shell("keys", "list").out
    assert re.search(r"NAME +ID +STATE", listed)
    assert re.search(r"ci +key_[0-9a-f]{16} +valid +all", listed)
    assert secret not in listed


@pytest.mark.parametrize("name", ["ci", "CI"])
def test_a_name_is_taken_once(shell: Shell, name: str) -> None:
    shell("keys", "create", "ci")
    again = shell("keys", "create", name)
    assert (again.status, again.out) == (1, "")
    assert "exists" in again.err


def test_a_revoked_key_stays_listed(shell: Shell) -> None:
    shell("keys", "create", "ci")
    assert shell("keys", "revoke", "ci").out == "the key ci is revoked\n"
    assert [key["state"] for key in shell("keys", "list", "--json").json()] == ["revoked"]


def test_a_key_is_revoked_by_its_id_too(shell: Shell) -> None:
    made = shell("keys", "create", "ci", "--json").json()
    assert shell("keys", "revoke", made["id"], "--json").json()["state"] == "revoked"


def test_a_key_that_is_not_there_cannot_be_revoked(shell: Shell) -> None:
    done = shell("keys", "revoke", "ghost")
    assert (done.status, done.err) == (1, "troyproxy: there is no key 'ghost'\n")


FILE = "keys: [{name: ci, key: 0123456789abcdef}]\n"


def test_keys_of_the_file_are_listed_too(shell: Shell) -> None:
    shell.write("troyproxy.yaml", FILE)
    assert [(key["name"], key["origin"]) for key in shell("keys", "list", "--json").json()] == [("ci", "file")]


@pytest.mark.parametrize("words", [("create", "ci"), ("revoke", "ci"), ("rotate", "ci"), ("delete", "ci")])
def test_a_key_of_the_file_is_changed_there(shell: Shell, words: tuple[str, ...]) -> None:
    shell.write("troyproxy.yaml", FILE)
    done = shell("keys", *words)
    assert done.status == 1
    assert "belongs to troyproxy.yaml; change it there" in done.err


def test_an_unknown_preferred_provider_is_a_warning(shell: Shell) -> None:
    made = shell("keys", "create", "ci", "--provider", "nowhere")
    assert made.status == 0
    assert "nowhere is no configured provider" in made.err


def test_an_expired_key_is_shown_as_such(shell: Shell) -> None:
    shell("keys", "create", "ci", "--expires", "0m")
    assert [key["state"] for key in shell("keys", "list", "--json").json()] == ["expired"]


@pytest.mark.parametrize("words", [("a/b",), ("ci", "--expires", "soon"), ("ci", "--expires", "2020-01-01T00:00:00Z")])
def test_a_bad_name_or_moment_is_a_usage_error(shell: Shell, words: tuple[str, ...]) -> None:
    done = shell("keys", "create", *words)
    assert (done.status, done.out) == (2, "")


def test_limits_and_budgets_are_options(shell: Shell) -> None:
    words = ("--requests-per-minute", "60", "--tokens-per-minute", "9000", "--budget-day", "0.5", "--budget-month", "9")
    made = shell("keys", "create", "ci", *words, "--json").json()
    assert made["limits"] == {
        "requests_per_minute": 60.0,
        "tokens_per_minute": 9000.0,
        "budget_usd_per_day": 0.5,
        "budget_usd_per_month": 9.0,
    }
    assert "requests_per_minute=60,tokens_per_minute=9000" in shell("keys", "list").out


@pytest.mark.parametrize("words", [("--requests-per-minute", "0"), ("--budget-day", "-1")])
def test_a_limit_out_of_range_fails_and_is_named(shell: Shell, words: tuple[str, ...]) -> None:
    done = shell("keys", "create", "ci", *words)
    assert (done.status, done.out) == (1, "")
    assert "limits." in done.err


def test_a_rotated_key_gets_a_new_secret_and_keeps_the_rest(shell: Shell) -> None:
    made = shell("keys", "create", "ci", "--models", "daily", "--json").json()
    rotated = shell("keys", "rotate", "ci")
    assert SECRET.fullmatch(rotated.out.strip())
    assert rotated.out.strip() != made.pop("key")
    assert "has a new secret; it is not shown again" in rotated.err
    assert shell("keys", "list", "--json").json() == [made]


def test_the_old_secret_may_go_on_for_a_while(shell: Shell) -> None:
    shell("keys", "create", "ci")
    rotated = shell("keys", "rotate", "ci", "--grace", "1h", "--json").json()
    assert SECRET.fullmatch(rotated["key"])
    assert rotated["old_secret_until"] is not None


def test_a_grace_that_is_no_time_is_a_usage_error(shell: Shell) -> None:
    shell("keys", "create", "ci")
    assert shell("keys", "rotate", "ci", "--grace", "soon").status == 2


def test_a_revoked_key_gets_no_new_secret(shell: Shell) -> None:
    shell("keys", "create", "ci")
    shell("keys", "revoke", "ci")
    done = shell("keys", "rotate", "ci")
    assert (done.status, done.out, "revoked" in done.err) == (1, "", True)


def test_a_deleted_key_frees_its_name(shell: Shell) -> None:
    shell("keys", "create", "ci")
    assert shell("keys", "delete", "ci").out == "the key ci is gone\n"
    made = shell("keys", "create", "ci", "--json").json()
    assert shell("keys", "delete", made["id"], "--json").json() == {"id": made["id"], "deleted": True}
