from __future__ import annotations

import pytest

from tests.cli.conftest import Shell


def test_every_setting_is_shown_with_its_origin(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROY_PORT", "4242")
    monkeypatch.setenv("TROY_ADMIN_TOKEN", "a-token-that-nobody-may-see")
    shown = shell("config", "show").out
    assert ["port", "4242", "environment"] in [line.split() for line in shown.split("\n")]
    assert ["admin_token", "***", "environment"] in [line.split() for line in shown.split("\n")]
    assert "nobody-may-see" not in shown


def test_a_valid_configuration_is_counted(shell: Shell) -> None:
    shell.write("troyproxy.yaml", "providers: {local: {base_url: 'http://127.0.0.1:1/v1', auth: none}}\n")
    assert shell("config", "check").out == "troyproxy.yaml is valid: 1 providers, 0 combos, 0 keys\n"


def test_warnings_go_to_standard_error(shell: Shell) -> None:
    shell.write("troyproxy.yaml", "providers: {groq: {}}\n")
    done = shell("config", "check")
    assert done.status == 0
    assert "troyproxy: providers.groq: has no account" in done.err


def test_check_speaks_json(shell: Shell) -> None:
    assert shell("config", "check", "--json").json() == {"ok": True, "file": None, "warnings": []}


def test_every_problem_of_a_file_is_told(shell: Shell) -> None:
    shell.write("troyproxy.yaml", "providers: {local: {base_ulr: x}}\nnonsense: 1\n")
    done = shell("config", "check")
    assert (done.status, done.out) == (1, "")
    assert "base_ulr" in done.err
    assert "nonsense" in done.err


def test_a_secret_key_that_is_none_is_told_before_the_start(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROY_SECRET_KEY", "short")
    done = shell("config", "check")
    assert (done.status, done.err.startswith("troyproxy: TROY_SECRET_KEY is not a key")) == (1, True)


def test_the_schema_is_json(shell: Shell) -> None:
    assert "combos" in shell("config", "schema").json()["properties"]


def test_check_makes_no_file(shell: Shell) -> None:
    shell("config", "check")
    assert list(shell.folder.iterdir()) == []
