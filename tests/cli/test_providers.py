from __future__ import annotations

import pytest

from tests.cli.conftest import Shell
from troyproxy.catalog.providers import Account, StoredProvider
from troyproxy.catalog.secret import Secret
from troyproxy.cli.session import Session, run_with

KEY = "gsk_0123456789abcdefghijklmnop"


def test_a_provider_with_a_key_is_listed_without_it(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    listed = shell("providers", "list", "--json")
    [groq] = listed.json()
    assert (groq["id"], groq["origin"], [account["name"] for account in groq["accounts"]]) == (
        "groq",
        "environment",
        ["env"],
    )
    assert KEY not in listed.out


def test_the_list_is_a_table(shell: Shell) -> None:
    shell.write("troyproxy.yaml", "providers: {local: {base_url: 'http://127.0.0.1:1/v1'}, groq: {}}\n")
    lines = [line.split() for line in shell("providers", "list").out.strip().split("\n")]
    assert lines[0] == ["PROVIDER", "ORIGIN", "ACCOUNTS", "MODELS", "WHERE"]
    assert lines[1] == ["local", "file", "none", "http://127.0.0.1:1/v1"]
    assert "more" in lines[2]


def test_the_demo_provider_answers(shell: Shell) -> None:
    done = shell("providers", "test", "demo")
    assert done.status == 0
    assert "demo/chat#demo-keyless=ok" in done.out


def test_another_model_may_be_asked(shell: Shell) -> None:
    told = shell("providers", "test", "demo", "--model", "ok", "--json").json()
    assert (told["model"], told["trail"]) == ("demo/ok", "demo/ok#demo-keyless=ok")


def test_a_provider_that_nobody_reaches_fails_clearly(shell: Shell) -> None:
    shell.write(
        "troyproxy.yaml", "providers: {local: {base_url: 'http://127.0.0.1:1/v1', auth: none, default_model: m}}\n"
    )
    done = shell("providers", "test", "local")
    assert done.status == 1
    assert "troyproxy: local/m did not answer: HTTP 502: " in done.err


def test_an_unknown_provider_names_those_that_are_there(shell: Shell) -> None:
    done = shell("providers", "test", "nowhere")
    assert (done.status, done.err) == (1, "troyproxy: there is no provider nowhere; configured: demo\n")


def test_a_provider_without_a_known_model_wants_one_named(shell: Shell) -> None:
    shell.write("troyproxy.yaml", "providers: {local: {base_url: 'http://127.0.0.1:1/v1', auth: none}}\n")
    done = shell("providers", "test", "local")
    assert done.status == 1
    assert "name one with --model" in done.err


async def _stored(found: Session) -> None:
    config = {"base_url": "http://127.0.0.1:1/v1", "default_model": "m"}
    account = Account("own#a", "own", "a", Secret(KEY))
    await found.services.store.providers.add(StoredProvider("own", config), accounts=[account])


def test_providers_of_the_database_are_listed_without_their_keys(shell: Shell) -> None:
    run_with(None, _stored)
    listed = shell("providers", "list", "--json")
    [own] = listed.json()
    assert (own["id"], own["origin"], [account["name"] for account in own["accounts"]]) == ("own", "database", ["a"])
    assert KEY not in listed.out


def test_a_provider_of_the_database_can_be_tested(shell: Shell) -> None:
    run_with(None, _stored)
    done = shell("providers", "test", "own")
    assert done.status == 1
    assert "troyproxy: own/m did not answer: HTTP 502: " in done.err
