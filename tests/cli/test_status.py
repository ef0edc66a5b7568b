"""``troyproxy status``: a table for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.conftest import Shell
from tests.cli.gateways import TOKEN, FakeGateway, fake_gateway

PAGE: dict[str, Any] = {
    "worker": {"name": "w2", "pid": 4711},
    "circuits": [
        {"provider": "alpha", "model": "m1", "state": "open", "until": 1_800_000_030.0},
        {"provider": "alpha", "model": "m2", "state": "closed", "until": None},
        {"provider": "beta", "model": "m3", "state": "half_open", "until": None},
    ],
    "cooldowns": [
        {"provider": "alpha", "account": "a", "model": "*", "class": "rate", "until": 1_800_000_009.0, "soft": True}
    ],
    "accounts": [{"provider": "alpha", "account": "a", "inflight": 3}],
    "queues": {"events": 0, "usage": 2},
    "shared_state": {"up": False, "failures": 4},
    "config": {"revision": 7, "loaded_at": 1_800_000_000.0, "error": "line 3 is wrong", "warnings": ["a warning"]},
}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGateway]:
    monkeypatch.setenv("TROY_ADMIN_TOKEN", TOKEN)
    with fake_gateway() as running:
        running.says("/api/status", PAGE)
        monkeypatch.setenv("TROY_PORT", str(running.port))
        yield running


def test_a_program_gets_the_page_as_it_is(shell: Shell, fake: FakeGateway) -> None:
    assert shell("status").json() == PAGE


def test_a_person_sees_what_is_barred_and_until_when(shell: Shell, fake: FakeGateway, terminal: None) -> None:
    out = shell("status").out
    for said in ("w2 (process 4711)", "line 3 is wrong", "a warning", "usage 2", "down", "rate (soft)"):
        assert said in out
    assert "m2" not in out
    assert out.count("circuit") == 2
    assert "2027-01-15T08:00:30Z" in out


def test_where_nothing_is_barred_that_is_said(shell: Shell, fake: FakeGateway, terminal: None) -> None:
    fake.says("/api/status", {**PAGE, "circuits": [], "cooldowns": [], "shared_state": None})
    out = shell("status").out
    assert "nothing is barred" in out
    assert "shared state" not in out


def test_json_is_json_on_a_terminal_too(shell: Shell, fake: FakeGateway, terminal: None) -> None:
    assert shell("status", "--json").json() == PAGE


def test_without_a_gateway_it_fails_with_one_line(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROY_ADMIN_TOKEN", TOKEN)
    done = shell("status", "--url", "http://127.0.0.1:9")
    assert (done.status, done.out, len(done.err.splitlines())) == (1, "", 1)
