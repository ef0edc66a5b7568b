"""Four workers on one port: one gateway to clients, to Prometheus and to the operator."""

from __future__ import annotations

import http.client
import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.running import once
from tests.e2e.background import in_background
from tests.e2e.gateway import ADMIN, KEY, Gateway, chat, run_gateway
from tests.e2e.pins import Pin, pids, pins
from tests.e2e.scrapes import counted, scraped
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Upstreams, error

WORKERS: Final = 4
SCRAPES: Final = 50
NAMES: Final = [f"worker-{number}" for number in range(1, WORKERS + 1)]


def config(upstreams: Upstreams, *combos: str) -> dict[str, Any]:
    accounts = [{"name": name, "api_key": f"sk-up-{name}"} for name in ("A", "B")]
    return {
        "keys": [{"name": "e2e", "key": KEY}],
        "providers": {
            "alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none", "models": {"m1": {}}},
            "beta": {"base_url": upstreams.base_url("beta"), "accounts": accounts},
        },
        "combos": {name: {"members": ["alpha/m1"]} for name in ("first", *combos)},
    }


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    with run_gateway(folder, config(upstreams), "--workers", str(WORKERS)) as running:
        yield running


@pytest.fixture
def crew(gateway: Gateway) -> Iterator[list[Pin]]:
    with pins(gateway, WORKERS) as met:
        yield met


class Load:
    """Clients that ask one after another until they are told to stop."""

    def __init__(self, gateway: Gateway, clients: int = 4) -> None:
        self._gateway, self._stop = gateway, threading.Event()
        self.answered: list[int] = []
        self.cut: list[Exception] = []
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(clients)]

    def _ask(self) -> None:
        while not self._stop.is_set():
            try:
                self.answered.append(self._gateway.post(chat("alpha/m1")).status)
            except (OSError, http.client.HTTPException) as exc:
                self.cut.append(exc)

    def running(self) -> AbstractContextManager[None]:
        """Ask in the background."""
        return in_background(self._threads, self._stop)

    def more(self, count: int) -> None:
        """Wait for so many more answers."""
        wanted = len(self.answered) + count
        until(lambda: len(self.answered) >= wanted)


def test_the_workers_have_names_and_processes_of_their_own(crew: list[Pin]) -> None:
    assert [pin.name for pin in crew] == NAMES
    assert len({pin.pid for pin in crew}) == WORKERS


def test_every_worker_serves_and_any_of_them_tells_the_story_of_a_request(crew: list[Pin]) -> None:
    for pin in crew:
        answer = pin.chat("first")
        assert answer.status == 200
        for other in crew:
            story = other.admin("GET", f"/api/requests/{answer.headers['x-troy-request-id']}")
            assert (story.status, story.json()["combo"]) == (200, "first")


def test_scrapes_agree_whichever_worker_answers(crew: list[Pin]) -> None:
    for pin in crew:
        assert pin.chat("alpha/m1").status == 200
    until(lambda: len({str(scraped(pin.ask("GET", "/metrics", token=None).body)) for pin in crew}) == 1)
    first = counted(crew[0].ask("GET", "/metrics", token=None).body)
    for turn in range(SCRAPES):
        assert counted(crew[turn % WORKERS].ask("GET", "/metrics", token=None).body) == first


def test_counters_never_fall_under_load(gateway: Gateway, crew: list[Pin]) -> None:
    load = Load(gateway)
    with load.running():
        before = counted(crew[0].ask("GET", "/metrics", token=None).body)
        for turn in range(SCRAPES):
            now = counted(crew[turn % WORKERS].ask("GET", "/metrics", token=None).body)
            assert [key for key, value in before.items() if now.get(key, -1.0) < value] == []
            before = now
        load.more(1)
    assert set(load.answered) == {200}
    assert load.cut == []


def test_no_request_in_flight_is_left_over(gateway: Gateway) -> None:
    until(lambda: gateway.metric("inflight_requests") == 0)
    assert gateway.metric("build_info") == 1


def test_a_killed_worker_comes_back_and_takes_nothing_with_it(gateway: Gateway) -> None:
    before, load = pids(gateway, WORKERS), Load(gateway)
    ok = {"outcome": "ok", "status": "200"}
    with load.running():
        load.more(20)
        counts = counted(gateway.get("/metrics").body)
        os.kill(before["worker-2"], signal.SIGKILL)
        after = until(lambda: restarted(gateway, before))
        cut = len(load.cut)
        load.more(40)
    assert {name for name in NAMES if after[name] != before[name]} == {"worker-2"}
    now = counted(gateway.get("/metrics").body)
    assert [key for key, value in counts.items() if now.get(key, -1.0) < value] == []
    # What it had accepted is gone with it: at most one request of each client. Nothing fails once it is back.
    assert (cut <= 4, len(load.cut) - cut, set(load.answered)) == (True, 0, {200})
    assert gateway.metric("requests_total", **ok) >= len(load.answered)
    assert said(gateway, "worker-2 has ended by SIGKILL; it is started again") == 1


def restarted(gateway: Gateway, before: dict[str, int]) -> dict[str, int]:
    now = pids(gateway, WORKERS)
    return now if now["worker-2"] != before["worker-2"] else {}


def test_sighup_reaches_every_worker(gateway: Gateway, upstreams: Upstreams, crew: list[Pin]) -> None:
    gateway.write_config(config(upstreams, "by-signal"))
    gateway.signal(signal.SIGHUP)
    until(lambda: all(pin.chat("by-signal").status == 200 for pin in crew))
    assert "by-signal" in crew[-1].ask("GET", "/v1/models").body.decode()


def test_a_reload_that_one_worker_was_asked_for_reaches_all(
    gateway: Gateway, upstreams: Upstreams, crew: list[Pin]
) -> None:
    gateway.write_config(config(upstreams, "by-api"))
    assert crew[0].admin("POST", "/api/config/reload").status == 200
    until(lambda: all(pin.chat("by-api").status == 200 for pin in crew))
    assert {pin.admin("GET", "/api/status").json()["config"]["error"] for pin in crew} == {None}


def test_a_revoked_key_is_refused_by_every_worker(gateway: Gateway, crew: list[Pin]) -> None:
    made = keys(gateway, "create", "short-lived")
    until(lambda: all(pin.chat("alpha/m1", token=made).status == 200 for pin in crew))
    keys(gateway, "revoke", "short-lived")
    until(lambda: [pin.chat("alpha/m1", token=made).status for pin in crew] == [401] * WORKERS)
    assert [
        gateway.whole("GET", "/v1/models", headers=[("authorization", f"Bearer {made}")]).status for _ in range(40)
    ] == [401] * 40


def keys(gateway: Gateway, *words: str) -> str:
    env = {"TROY_CONFIG": str(gateway.config_path), "TROY_DATABASE_URL": f"sqlite+aiosqlite:///{gateway.database}"}
    done = once(gateway.folder, "keys", *words, **env)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_redis_each_worker_finds_a_limit_out_once(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("beta", error(429, retry_after="60"), key="sk-up-A", model="limited")
    upstreams.script("beta", HEALTHY, key="sk-up-B", model="limited")
    answers = [gateway.post(chat("beta/limited")).status for _ in range(200)]
    assert set(answers) == {200}
    assert 1 <= len(upstreams.requests("beta", key="sk-up-A", model="limited")) <= WORKERS


def test_a_worker_that_comes_back_remembers_what_it_learned(
    gateway: Gateway, upstreams: Upstreams, crew: list[Pin]
) -> None:
    upstreams.script("alpha", error(429, retry_after="60"), model="resting")
    assert crew[0].chat("alpha/resting").status == 429
    until(lambda: [source.partition("/")[2] for source in journalled(gateway, "resting")] == ["worker-1"])
    os.kill(crew[0].pid, signal.SIGKILL)
    until(lambda: pids(gateway, WORKERS)["worker-1"] != crew[0].pid)
    with pins(gateway, WORKERS) as met:
        assert len(met[0].cooldowns("resting")) == 1
        assert met[0].chat("alpha/resting").code == "rate_limited"
    assert len(upstreams.requests("alpha", model="resting")) == 1


def journalled(gateway: Gateway, model: str) -> list[str]:
    """Return who has written events of *model* to the journal."""
    with closing(sqlite3.connect(gateway.database, timeout=5)) as database:
        rows = database.execute("select source from state_events where payload like ?", (f'%"{model}"%',))
        return [row[0] for row in rows]


def said(gateway: Gateway, text: str) -> int:
    """Return how often the gateway has logged *text*."""
    return (gateway.folder / "gateway.log").read_text("utf-8").count(text)


def test_a_clearing_reaches_every_worker(upstreams: Upstreams, crew: list[Pin]) -> None:
    upstreams.script("alpha", error(429, retry_after="60"), model="cleared")
    for pin in crew:
        assert pin.chat("alpha/cleared").status == 429
        assert len(pin.cooldowns("cleared")) == 1
    answer = crew[0].admin("POST", "/api/cooldowns/clear", {"provider": "alpha", "model": "cleared"})
    assert (answer.status, answer.json()["everywhere"]) == (200, True)
    until(lambda: not any(pin.cooldowns("cleared") for pin in crew))
    assert upstreams.requests("alpha", model="cleared") != []


def test_the_worker_that_cleared_forgets_nothing_that_failed_since(upstreams: Upstreams, crew: list[Pin]) -> None:
    """It reads its own order back within half a second."""
    upstreams.script("alpha", error(500), model="failing")
    pin = crew[0]
    before = pin.status()["config"]["revision"]
    assert pin.admin("POST", "/api/cooldowns/clear", {"provider": "alpha"}).status == 200
    for _ in range(2):
        assert pin.chat("alpha/failing").status == 500
    until(lambda: pin.status()["config"]["revision"] > before)
    assert pin.chat("alpha/failing").status == 500
    assert [each["state"] for each in pin.status()["circuits"] if each["model"] == "failing"] == ["open"]


def test_the_start_says_once_what_the_workers_do_not_share(gateway: Gateway) -> None:
    assert said(gateway, "4 workers serve, each with cooldowns and circuits of its own") == 1


def test_the_admin_token_is_one_for_all(gateway: Gateway) -> None:
    assert {gateway.get("/api/status", token=ADMIN).status for _ in range(20)} == {200}
