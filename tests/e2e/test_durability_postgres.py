"""What survives when PostgreSQL goes away: under load, and before the gateway starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.client import Response
from tests.e2e.gateway import CHAT, KEY, ROOT, Gateway, chat, run_gateway
from tests.e2e.storm import Storm
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Upstreams, error
from tests.services import Postgres

NAME: Final = "durable"
SECRET_KEY: Final = "c2VjcmV0LWtleS1vZi10aGUtdGVzdHMtMzItYnl0ZXM="
NEVER_SEEN: Final = "sk-troy-" + "ab" * 24
MALFORMED: Final = "sk-troy-not-one-of-ours"


@pytest.fixture(scope="module")
def server(postgres_server: Postgres) -> Postgres:
    postgres_server.sql(f"CREATE DATABASE {NAME}")
    return postgres_server


@pytest.fixture(scope="module")
def gateway(folder: Path, server: Postgres, upstreams: Upstreams) -> Iterator[Gateway]:
    accounts = [{"name": "A", "api_key": "sk-up-A"}]
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "accounts": accounts}}}
    env = {"TROY_DATABASE_URL": server.url(NAME), "TROY_SECRET_KEY": SECRET_KEY, "TROY_MAX_INFLIGHT": "100"}
    command("db", "upgrade", folder=folder, **env)
    with run_gateway(folder, config, **env) as running:
        yield running


@pytest.fixture(scope="module")
def key(gateway: Gateway, server: Postgres) -> str:
    """A client key of the database."""
    env = {"TROY_DATABASE_URL": server.url(NAME), "TROY_CONFIG": str(gateway.config_path)}
    made = command("keys", "create", "stored", "--json", folder=gateway.folder, **env)
    secret: str = json.loads(made)["key"]
    until(lambda: ask(gateway, secret).status == 200)
    return secret


def command(*arguments: str, folder: Path, **env: str) -> str:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    run = [sys.executable, "-m", "troyproxy", *arguments]
    environment = {**os.environ, "PYTHONPATH": path, "TROY_SECRET_KEY": SECRET_KEY, **env}
    return subprocess.run(run, env=environment, cwd=folder, check=True, capture_output=True, timeout=60).stdout.decode()


def ask(gateway: Gateway, key: str = KEY, model: str = "alpha/ok") -> Response:
    headers = [("authorization", f"Bearer {key}"), ("content-type", "application/json")]
    return gateway.whole("POST", CHAT, json.dumps(chat(model)).encode(), headers)


def degraded(gateway: Gateway) -> list[str]:
    answer = gateway.get("/readyz")
    assert answer.status == 200
    found: list[str] = answer.json()["degraded"]
    return found


def locked(gateway: Gateway) -> dict[str, float]:
    return {lock["model"]: lock["until"] for lock in gateway.status()["cooldowns"]}


@contextmanager
def stopped(server: Postgres, gateway: Gateway | None = None) -> Iterator[None]:
    """Take PostgreSQL away as a crash would; from a running *gateway* once it has seen every change."""
    if gateway is not None:
        until(lambda: [str(gateway.status()["config"]["revision"])] == server.sql("SELECT revision FROM control", NAME))
        until(lambda: degraded(gateway) == [])
    server.stop()
    try:
        yield
    finally:
        with suppress(RuntimeError):  # it runs already
            server.start()


def test_postgresql_that_dies_and_comes_back_under_load_fails_no_request_and_loses_nothing(
    gateway: Gateway, server: Postgres, upstreams: Upstreams, key: str
) -> None:
    upstreams.script("alpha", error(429, retry_after="600"), HEALTHY, model="meanwhile")
    with Storm(gateway, ["alpha/ok"], key=key) as storm:
        storm.served(50)
        with stopped(server, gateway):
            until(lambda: degraded(gateway) == ["database"])
            storm.served(300)
            assert ask(gateway, model="alpha/meanwhile").status == 429
            waiting = gateway.metric("queue_depth", queue="usage"), gateway.metric("queue_depth", queue="events")
            up = gateway.metric("database_up")
        until(lambda: degraded(gateway) == [])
        storm.served(50)
    assert (storm.statuses(), storm.broken) == ({200}, 0)
    assert min(waiting) > 0
    assert (up, gateway.metric("database_up")) == (0, 1)
    assert until(lambda: storm.ids() <= set(server.sql("SELECT request_id FROM usage_rows", NAME)))
    assert until(lambda: server.sql("SELECT 1 FROM state_events WHERE payload->>'model' = 'meanwhile'", NAME))
    assert gateway.metric("queue_dropped_total") == 0


def test_while_the_database_is_down_known_keys_work_and_unknown_ones_are_not_let_in(
    gateway: Gateway, server: Postgres, key: str
) -> None:
    until(lambda: degraded(gateway) == [])
    with Storm(gateway, ["alpha/ok"], key=key, clients=1), stopped(server, gateway):
        until(lambda: degraded(gateway) == ["database"])
        found = [(answer.status, answer.json().get("error", {}).get("code")) for answer in _asked(gateway, key)]
    assert found == [(200, None), (200, None), (503, "store_unavailable"), (401, "invalid_api_key")]


def _asked(gateway: Gateway, key: str) -> list[Response]:
    return [ask(gateway, each) for each in (KEY, key, NEVER_SEEN, MALFORMED)]


def test_a_reload_that_cannot_read_the_database_changes_nothing(gateway: Gateway, server: Postgres) -> None:
    assert gateway.admin("POST", "/api/combos", {"name": "kept", "members": ["alpha/ok"]}).status == 201
    with stopped(server, gateway):
        until(lambda: degraded(gateway) == ["database"])
        answers = [
            gateway.admin("POST", "/api/config/reload"),
            gateway.admin("POST", "/api/combos", {"name": "lost", "members": ["alpha/ok"]}),
        ]
        served = ask(gateway, model="kept")
    assert [(answer.status, answer.code) for answer in answers] == [(503, "store_unavailable")] * 2
    assert (served.status, served.headers["x-troy-combo"]) == (200, "kept")
    until(lambda: degraded(gateway) == [])
    assert gateway.admin("POST", "/api/config/reload").status == 200


def test_a_database_that_is_down_at_the_start_is_picked_up_when_it_is_back(
    gateway: Gateway, server: Postgres, upstreams: Upstreams, key: str
) -> None:
    upstreams.script("alpha", error(429, retry_after="600"), HEALTHY, model="earlier")
    assert gateway.admin("POST", "/api/combos", {"name": "stored", "members": ["alpha/ok"]}).status == 201
    assert ask(gateway, model="alpha/earlier").status == 429
    until(lambda: server.sql("SELECT 1 FROM state_events WHERE payload->>'model' = 'earlier'", NAME))
    before = locked(gateway)
    gateway.stop()
    with stopped(server):
        gateway.start()
        assert degraded(gateway) == ["database"]
        assert [ask(gateway, each).status for each in (KEY, key)] == [200, 503]
        assert (ask(gateway, model="stored").status, locked(gateway)) == (404, {})
    assert until(lambda: ask(gateway, key, "stored").status == 200)
    assert before.items() <= until(lambda: locked(gateway)).items()
    assert ask(gateway, model="alpha/earlier").status == 429
    until(lambda: degraded(gateway) == [])
    assert len(upstreams.requests("alpha", model="earlier")) == 1


def test_rows_of_a_start_without_the_database_are_written_when_it_is_back(gateway: Gateway, server: Postgres) -> None:
    gateway.stop()
    with stopped(server):
        gateway.start()
        answer = ask(gateway)
    assert answer.status == 200
    assert until(lambda: answer.headers["x-troy-request-id"] in server.sql("SELECT request_id FROM usage_rows", NAME))
