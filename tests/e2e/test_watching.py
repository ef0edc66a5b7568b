"""An operator's view of a running gateway: events, ``requests tail``, ``status``, ``quota``, while a member fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from tests.cli.running import environment
from tests.e2e.client import Open
from tests.e2e.gateway import ADMIN, KEY, Gateway, chat, run_gateway
from tests.e2e.shapes import completion
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Upstreams, error, whole
from troyproxy.cli.main import app

NAMES: Final = ("alpha", "beta", "silent")
SAID: Final = {"x_ratelimit_limit_requests": "60", "x_ratelimit_remaining_requests": "45"}


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {
        "providers": {
            name: {"base_url": upstreams.base_url(name), "accounts": [{"name": "main", "api_key": f"secret-of-{name}"}]}
            for name in NAMES
        },
        "combos": {
            "daily": {"members": ["alpha/m1", "beta/m1"]},
            "weekly": {"members": ["alpha/m2", "beta/m1"]},
        },
    }
    upstreams.script("alpha", error(500, "out of order"))
    upstreams.script("alpha", error(429, "slow down", retry_after="60"), model="limited")
    upstreams.script("beta", whole(completion("hello", model="m1"), 200, **SAID))
    upstreams.script("silent", HEALTHY)
    with run_gateway(folder, config, TROY_BREAKER_FAILURES="1") as running:
        yield running


def read_events(answer: Open, wanted: int) -> list[tuple[str, Any]]:
    """Read until there are as many events."""
    text = b""
    while text.count(b"\n\n") < wanted:
        part = answer.read()
        assert part, f"the stream ended after {text!r}"
        text += part
    blocks = [block.split("\n") for block in text.decode().split("\n\n")[:wanted]]
    return [(block[0].removeprefix("event: "), json.loads(block[-1].removeprefix("data: "))) for block in blocks]


def watching(gateway: Gateway, query: str = "") -> Open:
    return gateway.call("GET", f"/api/events{query}", headers=[("authorization", f"Bearer {ADMIN}")])


def command(gateway: Gateway, *words: str) -> str:
    """Run one command beside the gateway, with its configuration, and return what it prints."""
    done = CliRunner().invoke(app, words, env={**variables(gateway), "TROY_CONFIG": str(gateway.config_path)})
    assert done.exit_code == 0, done.stderr
    return done.stdout + done.stderr


def variables(gateway: Gateway) -> dict[str, str]:
    database = f"sqlite+aiosqlite:///{gateway.database}"
    return {"TROY_PORT": str(gateway.port), "TROY_ADMIN_TOKEN": ADMIN, "TROY_DATABASE_URL": database}


@contextmanager
def tailing(gateway: Gateway) -> Iterator[Path]:
    """Run ``requests tail`` until it has seen enough; yield what it writes to, once it watches."""
    out, err = gateway.folder / "tail.out", gateway.folder / "tail.err"
    with out.open("wb") as said, err.open("wb") as noted:
        process = subprocess.Popen(
            [sys.executable, "-m", "troyproxy", "requests", "tail"],
            cwd=gateway.folder,
            env=environment(**variables(gateway)),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=noted,
        )
    try:
        until(lambda: "watching worker" in err.read_text(encoding="utf-8") or process.poll() is not None, within_s=60)
        assert process.poll() is None, err.read_text(encoding="utf-8")
        yield out
    finally:
        process.terminate()
        process.wait(timeout=20)


def test_events_arrive_while_a_member_is_failed_over(gateway: Gateway) -> None:
    with closing(watching(gateway)) as stream:
        assert gateway.post(chat("daily")).status == 200
        events = read_events(stream, 7)
    names = ["hello", "attempt", "cooldown", "circuit", "failover", "attempt", "request"]
    assert [name for name, _ in events] == names
    seen = dict(events)
    assert (seen["circuit"]["to"], seen["failover"]["to_provider"]) == ("open", "beta")
    assert seen["request"]["trail"] == "alpha/m1#main=transient,beta/m1#main=ok"


def test_tail_shows_them_and_status_shows_the_circuit_that_opened(gateway: Gateway) -> None:
    with tailing(gateway) as out:
        assert gateway.post(chat("weekly")).status == 200
        lines = until(lambda: {line["event"]: line for line in _lines(out)} if len(_lines(out)) >= 4 else {})
    assert list(lines) == ["cooldown", "circuit", "failover", "request"]
    assert (lines["circuit"]["model"], lines["circuit"]["to"]) == ("m2", "open")
    found = json.loads(command(gateway, "status"))
    assert ("alpha", "m2", "open") in [(each["provider"], each["model"], each["state"]) for each in found["circuits"]]


def _lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines() if line.endswith("}")]


def test_the_story_of_a_request_is_shown(gateway: Gateway) -> None:
    request_id = gateway.post(chat("beta/m1")).headers["x-troy-request-id"]
    gateway.row(request_id)
    assert json.loads(command(gateway, "requests", "show", request_id))["requested_model"] == "beta/m1"


def test_the_board_shows_what_was_said_and_nothing_where_nothing_is_known(gateway: Gateway) -> None:
    assert gateway.post(chat("beta/m1")).status == 200
    assert gateway.post(chat("alpha/limited")).status == 429
    until(lambda: _board(gateway)["alpha"].get("usage", {}).get("rate_limited") == 1)
    board = _board(gateway)
    [said] = board["beta"]["accounts"][0]["signals"]
    assert (said["limit"], said["remaining"], said["current"], said["age_s"] >= 0) == (60, 45, True, True)
    assert board["beta"]["usage"]["requests"] >= 1
    [lock] = [each for each in board["alpha"]["accounts"][0]["cooldowns"] if each["model"] == "limited"]
    assert (lock["class"], board["alpha"]["usage"]["requests"]) == ("rate", 0)
    silent = {"provider": "silent", "state": "unknown", "ceilings": [], "accounts": [{"account": "main"}]}
    assert board["silent"] == silent


def _board(gateway: Gateway) -> dict[str, Any]:
    answer = gateway.admin("GET", "/api/admin/ai/quota")
    assert answer.status == 200, answer.body
    return {each["provider"]: each for each in answer.json()["providers"]}


def test_the_command_shows_the_same_board_and_no_secret_is_anywhere(gateway: Gateway) -> None:
    shown = command(gateway, "quota", "--json")
    assert [each["provider"] for each in json.loads(shown)["providers"]] == list(NAMES)
    told = shown + command(gateway, "status")
    assert [secret for secret in (KEY, ADMIN, *(f"secret-of-{name}" for name in NAMES)) if secret in told] == []


def test_a_reader_that_stands_still_slows_no_request(gateway: Gateway) -> None:
    with closing(watching(gateway)):
        statuses = {gateway.post(chat("beta/m1")).status for _ in range(20)}
    assert statuses == {200}


def test_a_stream_ends_at_the_stop_and_holds_up_nothing(gateway: Gateway) -> None:
    with closing(watching(gateway, "?kinds=config")) as stream:
        gateway.stop()
        assert [name for name, _ in read_events(stream, 2)] == ["hello", "end"]
    gateway.start()
