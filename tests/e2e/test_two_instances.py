"""Two gateway processes on one Redis and one PostgreSQL: what one learns, both honour; and neither needs the Redis.

`tests/proxy/test_mirroring.py` shows the rules in virtual time; here real processes show that they hold.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Self

import pytest

from tests.e2e.client import Response
from tests.e2e.gateway import ROOT, Gateway, chat, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Upstreams, error
from tests.services import Redis, postgres, redis

SOON_S: Final = 5.0
"""A second is promised; a machine that is busy with other tests may need more."""
PROMISED_S: Final = 1.0
CHANCES: Final = 4
PASSWORD: Final = "shared-state-password"
SECRET_KEY: Final = "c2VjcmV0LWtleS1vZi10aGUtdGVzdHMtMzItYnl0ZXM="
LOADERS: Final = 4
COMBOS: Final = ("cooling", "restarted", "breaking", "cleared", "storm", "hanging")
"""Each of `alpha` and then `beta`, under models of the same name."""


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres() as server:
        server.sql("CREATE DATABASE troy")
        command = [sys.executable, "-m", "troyproxy", "db", "upgrade"]
        subprocess.run(
            command, cwd=ROOT, env=environment(server.url("troy")), check=True, capture_output=True, timeout=60
        )
        yield server.url("troy")


@pytest.fixture(scope="module")
def shared() -> Iterator[Redis]:
    with redis(password=PASSWORD) as server:
        yield server


@pytest.fixture
def running(shared: Redis) -> Iterator[Redis]:
    """The Redis, for a test that stops it; it runs again afterwards."""
    yield shared
    shared.stop()
    shared.start()


@pytest.fixture(scope="module")
def one(
    database: str, shared: Redis, upstreams: Upstreams, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    with instance(tmp_path_factory.mktemp("one"), database, shared, upstreams) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def other(
    database: str, shared: Redis, upstreams: Upstreams, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    with instance(tmp_path_factory.mktemp("other"), database, shared, upstreams) as gateway:
        yield gateway


def environment(database: str) -> dict[str, str]:
    return {"TROY_DATABASE_URL": database, "TROY_SECRET_KEY": SECRET_KEY, "PYTHONPATH": str(ROOT)}


def instance(folder: Path, database: str, shared: Redis, upstreams: Upstreams) -> Any:  # noqa: ANN401 - as `run_gateway`
    providers = {
        name: {
            "base_url": upstreams.base_url(name),
            "accounts": [{"name": "A", "api_key": f"sk-up-{name}"}],
        }
        for name in ("alpha", "beta")
    }
    combos = {name: {"members": [f"alpha/{name}", f"beta/{name}"]} for name in COMBOS}
    env = {**environment(database), "TROY_REDIS_URL": shared.url, "TROY_BREAKER_OPEN_S": "300"}
    return run_gateway(folder, {"providers": providers, "combos": combos}, **env)


def served_by(answer: Response) -> str:
    """Return the provider that served; the model's name behind it is the combo's."""
    return answer.headers["x-troy-model"].partition("/")[0]


def locks(gateway: Gateway, model: str) -> list[dict[str, Any]]:
    return [lock for lock in gateway.status()["cooldowns"] if lock["model"] == model]


def circuits(gateway: Gateway, model: str) -> list[str]:
    return [circuit["state"] for circuit in gateway.status()["circuits"] if circuit["model"] == model]


def degraded(gateway: Gateway) -> bool:
    answer = gateway.get("/readyz")
    assert answer.status == 200
    return bool(answer.json()["degraded"] == ["shared_state"])


def cool(one: Gateway, other: Gateway, upstreams: Upstreams, model: str) -> None:
    """Have `alpha` refuse for two minutes, and both know it."""
    upstreams.script("alpha", error(429, retry_after="120"), HEALTHY, model=model)
    one.post(chat(model))
    until(lambda: locks(other, model), within_s=SOON_S)


def test_a_cooldown_of_one_is_honoured_by_the_other(one: Gateway, other: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", error(429, retry_after="120"), HEALTHY, model="cooling")
    assert served_by(one.post(chat("cooling"))) == "beta"
    until(lambda: locks(other, "cooling"), within_s=SOON_S)
    assert locks(other, "cooling") == locks(one, "cooling")
    assert {served_by(other.post(chat("cooling"))) for _ in range(5)} == {"beta"}
    assert len(upstreams.requests("alpha", model="cooling")) == 1


def test_a_restart_of_one_keeps_it(one: Gateway, other: Gateway, upstreams: Upstreams) -> None:
    cool(one, other, upstreams, "restarted")
    other.kill()
    other.start()
    assert locks(other, "restarted") == locks(one, "restarted")
    assert served_by(other.post(chat("restarted"))) == "beta"
    assert len(upstreams.requests("alpha", model="restarted")) == 1


def test_an_open_circuit_of_one_is_honoured_by_the_other(one: Gateway, other: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", error(500), model="breaking")
    for _ in range(3):
        one.post(chat("alpha/breaking"))
    assert circuits(one, "breaking") == ["open"]
    until(lambda: circuits(other, "breaking") == ["open"], within_s=SOON_S)
    assert other.metric("circuit_state", model="breaking") == 2
    assert served_by(other.post(chat("breaking"))) == "beta"
    assert len(upstreams.requests("alpha", model="breaking")) == 3


def test_an_operators_clearing_is_followed_by_the_other(one: Gateway, other: Gateway, upstreams: Upstreams) -> None:
    cool(one, other, upstreams, "cleared")
    assert other.admin("POST", "/api/cooldowns/clear", {"provider": "alpha", "model": "cleared"}).status == 200
    until(lambda: not locks(one, "cleared"), within_s=SOON_S)
    assert locks(other, "cleared") == []
    assert served_by(one.post(chat("cleared"))) == "alpha"


def commanded(gateway: Gateway, database: str, *arguments: str) -> str:
    """Run a command beside the gateways, on their database, and return what it printed."""
    command = [sys.executable, "-m", "troyproxy", *arguments]
    env = {**environment(database), "TROY_CONFIG": str(gateway.config_path)}
    return subprocess.run(
        command, env=env, cwd=gateway.folder, check=True, capture_output=True, timeout=60, text=True
    ).stdout


def heard_after_s(one: Gateway, other: Gateway, database: str, name: str) -> float:
    """Make a key, revoke it, wait until both refuse it; return how long the later one's clock says it took to hear."""
    key = json.loads(commanded(one, database, "keys", "create", name, "--json"))["key"]

    def statuses() -> list[int]:
        headers = [("authorization", f"Bearer {key}"), ("content-type", "application/json")]
        body = json.dumps(chat("beta/any")).encode()
        return [each.whole("POST", "/v1/chat/completions", body, headers).status for each in (one, other)]

    until(lambda: statuses() == [200, 200], within_s=SOON_S)
    commanded(one, database, "keys", "revoke", name)
    until(lambda: statuses() == [401, 401], within_s=SOON_S)
    revoked_at: float = one.admin("GET", f"/api/keys/{name}").json()["revoked_at"]

    def heard_at() -> float:
        """Return when the later of the two took the change in; a request may have found it out before that."""
        return min(float(each.status()["config"]["loaded_at"]) for each in (one, other))

    until(lambda: heard_at() >= revoked_at, within_s=SOON_S)
    return max(float(each.status()["config"]["loaded_at"]) for each in (one, other)) - revoked_at


def test_a_revoked_key_is_refused_by_both_within_a_second(
    one: Gateway, other: Gateway, database: str, upstreams: Upstreams
) -> None:
    """By the gateways' own clocks: a machine that is busy with other tests may be late once, but not every time."""
    late = [heard_after_s(one, other, database, "short-lived-0")]
    while late[-1] >= PROMISED_S and len(late) < CHANCES:
        late.append(heard_after_s(one, other, database, f"short-lived-{len(late)}"))
    assert 0 <= late[-1] < PROMISED_S, late


def test_a_reload_of_one_is_followed_by_the_other(one: Gateway, other: Gateway) -> None:
    answer = one.admin("POST", "/api/config/reload")
    assert answer.status == 200
    revision = answer.json()["revision"]
    assert until(lambda: other.status()["config"]["revision"] == revision, within_s=SOON_S)


class Load:
    """Clients that ask both gateways without a pause, until told to stop."""

    def __init__(self, model: str, *gateways: Gateway) -> None:
        self._model, self._gateways = model, gateways
        self._stop = threading.Event()
        self.answers: list[Response] = []

    def ask(self, number: int) -> None:
        while not self._stop.is_set():
            self.answers.append(self._gateways[number % len(self._gateways)].post(chat(self._model)))

    def __enter__(self) -> Self:
        self._pool = ThreadPoolExecutor(LOADERS)
        self._clients = [self._pool.submit(self.ask, number) for number in range(LOADERS)]
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()
        for client in self._clients:
            client.result()

    def served(self, more: int) -> None:
        """Wait until so many more requests were answered."""
        goal = len(self.answers) + more
        until(lambda: len(self.answers) >= goal)


def test_a_redis_that_dies_and_comes_back_under_load_fails_no_request_and_wakes_no_cooled_target(
    one: Gateway, other: Gateway, running: Redis, upstreams: Upstreams
) -> None:
    cool(one, other, upstreams, "storm")
    with Load("storm", one, other) as load:
        load.served(20)
        running.stop()
        until(lambda: degraded(one) and degraded(other))
        assert (one.metric("shared_state_up"), one.status()["shared_state"]["up"]) == (0, False)
        load.served(100)
        running.start()
        until(lambda: not degraded(one) and not degraded(other))
        load.served(50)
    assert {answer.status for answer in load.answers} == {200}
    assert {served_by(answer) for answer in load.answers} == {"beta"}
    assert len(upstreams.requests("alpha", model="storm")) == 1
    assert one.metric("shared_state_up") == 1


def test_what_was_learned_while_redis_was_away_is_shared_when_it_is_back(
    one: Gateway, other: Gateway, running: Redis, upstreams: Upstreams
) -> None:
    running.stop()
    until(lambda: degraded(one) and degraded(other))
    upstreams.script("alpha", error(429, retry_after="120"), model="meanwhile")
    assert one.post(chat("alpha/meanwhile")).status == 429
    assert locks(other, "meanwhile") == []
    running.start()
    until(lambda: locks(other, "meanwhile"))
    assert locks(other, "meanwhile") == locks(one, "meanwhile")


def test_a_redis_that_hangs_delays_no_request(
    one: Gateway, other: Gateway, running: Redis, upstreams: Upstreams
) -> None:
    cool(one, other, upstreams, "hanging")
    running.freeze()
    try:
        with Load("hanging", one, other) as load:
            until(lambda: degraded(one) and degraded(other))
            load.served(50)
    finally:
        running.thaw()
    until(lambda: not degraded(one) and not degraded(other))
    assert {answer.status for answer in load.answers} == {200}
    assert len(upstreams.requests("alpha", model="hanging")) == 1


def test_a_redis_that_is_not_there_stops_no_start(one: Gateway, other: Gateway, running: Redis) -> None:
    running.stop()
    other.stop()
    other.start()
    assert degraded(other)
    assert other.post(chat("beta/any")).status == 200
    running.start()
    until(lambda: not degraded(other))
    assert other.status()["shared_state"]["up"]


def test_the_password_of_the_redis_is_in_no_output(one: Gateway, other: Gateway, running: Redis) -> None:
    running.stop()
    until(lambda: degraded(one) and degraded(other))
    assert [("shared state" in each.output(), PASSWORD in each.output()) for each in (one, other)] == [
        (True, False)
    ] * 2
