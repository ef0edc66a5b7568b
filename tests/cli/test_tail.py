"""``troyproxy requests tail`` and ``show``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.conftest import Shell
from tests.cli.gateways import TOKEN, FakeGateway, fake_gateway
from troyproxy.cli import tail

STATES = f"/api/events?kinds={','.join(tail.STATES)}"
HELLO = ("hello", {"worker": {"name": "w1", "pid": 7}})
REQUEST = (
    "request",
    {"at": 1_800_000_000.0, "request_id": "req_1", "status": 200, "trail": "a/b#c=ok", "route": "/v1"},
)
CIRCUIT = ("circuit", {"at": 1_800_000_001.0, "provider": "alpha", "to": "open\n"})


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGateway]:
    monkeypatch.setenv("TROY_ADMIN_TOKEN", TOKEN)
    with fake_gateway() as running:
        monkeypatch.setenv("TROY_PORT", str(running.port))
        yield running


def test_a_program_gets_one_line_of_json_an_event(shell: Shell, fake: FakeGateway) -> None:
    fake.tells(STATES, HELLO, REQUEST, CIRCUIT)
    done = shell("requests", "tail")
    assert [json.loads(line)["event"] for line in done.out.splitlines()] == ["request", "circuit"]
    assert (done.status, done.err) == (0, "troyproxy: watching worker w1 (process 7)\n")


def test_a_person_gets_one_line_an_event(shell: Shell, fake: FakeGateway, terminal: None) -> None:
    fake.tells(STATES, HELLO, REQUEST, CIRCUIT)
    assert shell("requests", "tail").out.splitlines() == [
        "08:00:00 request   request_id=req_1 status=200 trail=a/b#c=ok",
        "08:00:01 circuit   provider=alpha to=open\\n",
    ]


def test_a_person_reads_times_of_the_clock_and_no_empty_words(shell: Shell, fake: FakeGateway, terminal: None) -> None:
    lock = {"at": 1_800_000_000.0, "provider": "alpha", "until": 1_800_000_060.5, "wait_s": None, "soft": False}
    fake.tells(STATES, HELLO, ("cooldown", lock))
    assert shell("requests", "tail").out == "08:00:00 cooldown  provider=alpha until=08:01:00 soft=no\n"


def test_everything_is_shown_on_request(shell: Shell, fake: FakeGateway) -> None:
    fake.tells("/api/events", HELLO, ("attempt", {"at": 1.0}))
    assert json.loads(shell("requests", "tail", "--all").out)["event"] == "attempt"


def test_it_ends_after_as_many_events_as_asked_for(shell: Shell, fake: FakeGateway) -> None:
    fake.tells(STATES, HELLO, REQUEST, REQUEST, CIRCUIT)
    assert len(shell("requests", "tail", "-n", "2").out.splitlines()) == 2


def test_what_was_lost_and_why_it_ends_is_said_apart(shell: Shell, fake: FakeGateway) -> None:
    fake.tells(STATES, ("lost", {"events": 3}), ("end", {"reason": "the process stops"}))
    done = shell("requests", "tail")
    assert done.out == ""
    assert "3 events are lost" in done.err
    assert "the stream ends: the process stops" in done.err


def test_an_interrupt_is_no_failure(shell: Shell, fake: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(told: object, line: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tail, "_print", interrupted)
    fake.tells(STATES, HELLO)
    assert shell("requests", "tail").status == 0


# --- show ---


@pytest.fixture
def request_id(shell: Shell) -> str:
    """The id of a request that failed."""
    shell("providers", "test", "demo", "--model", "fail-500")
    [_, line] = shell("requests", "export").out.splitlines()
    found: str = json.loads(line)["request_id"]
    return found


def test_the_story_is_that_of_the_admin_api(shell: Shell, request_id: str) -> None:
    found: Any = shell("requests", "show", request_id).json()
    assert (found["request_id"], found["outcome"]) == (request_id, "upstream_error")
    assert [each["outcome"] for each in found["attempts"]] == ["transient"]


def test_a_person_sees_its_attempts(shell: Shell, request_id: str, terminal: None) -> None:
    out = shell("requests", "show", request_id).out
    assert request_id in out
    assert "500: transient" in out


def test_a_person_sees_dates_and_milliseconds_and_no_source_code(shell: Shell, request_id: str, terminal: None) -> None:
    found: Any = shell("requests", "show", request_id, "--json").json()
    out = shell("requests", "show", request_id).out
    assert re.search(r"\bat +20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", out)
    assert re.search(rf"duration_ms +{found['duration_ms']:.1f} ", out)
    assert re.search(r"stream +no", out)


def test_a_person_reads_in_words_what_was_used(shell: Shell, terminal: None) -> None:
    shell("providers", "test", "demo")
    [_, line] = shell("requests", "export").out.splitlines()
    out = shell("requests", "show", json.loads(line)["request_id"]).out
    assert re.search(r"usage +input \d+, output \d+", out)
    assert "{" not in out


def test_a_request_that_nobody_knows_is_said(shell: Shell) -> None:
    done = shell("requests", "show", "req_0")
    assert (done.status, done.err) == (1, "troyproxy: the database has no request 'req_0'\n")
