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
    assert (done.status, done.err) == (1, "troyproxy: there is no key ghost: see `troyproxy keys list`\n")


FILE = "keys: [{name: ci, key: 0123456789abcdef}]\n"


def test_keys_of_the_file_are_listed_too(shell: Shell) -> None:
    shell.write("troyproxy.yaml", FILE)
    assert [(key["name"], key["origin"]) for key in shell("keys", "list", "--json").json()] == [("ci", "file")]


@pytest.mark.parametrize("words", [("create", "ci"), ("revoke", "ci")])
def test_a_key_of_the_file_is_changed_there(shell: Shell, words: tuple[str, ...]) -> None:
    shell.write("troyproxy.yaml", FILE)
    done = shell("keys", *words)
    assert done.status == 1
    assert "stands in the config file" in done.err


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
