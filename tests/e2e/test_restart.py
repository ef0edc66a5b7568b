"""Kill -9 in the middle of a cooldown: what was locked is locked after the restart, for its remaining time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Upstreams, error


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    account = {"name": "A", "api_key": "sk-up-A"}
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "accounts": [account]}}}
    # A circuit that opens and cools nothing else: soft cooldowns of 2 s are passed over when nobody else is there.
    with run_gateway(folder, config, TROY_BREAKER_OPEN_S="300") as running:
        yield running


def journalled(gateway: Gateway) -> int:
    with closing(sqlite3.connect(gateway.database, timeout=5)) as database:
        count: int = database.execute("select count(*) from state_events").fetchone()[0]
    return count


def crash(gateway: Gateway) -> None:
    gateway.kill()
    gateway.start()


def test_a_cooldown_survives_kill_9_with_its_remaining_time(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", error(429, retry_after="90"), HEALTHY, model="cooling")
    before = journalled(gateway)
    assert gateway.post(chat("alpha/cooling")).status == 429
    locks = [lock for lock in gateway.status()["cooldowns"] if lock["model"] == "cooling"]
    assert len(locks) == 1
    until(lambda: journalled(gateway) > before)
    crash(gateway)
    assert [lock for lock in gateway.status()["cooldowns"] if lock["model"] == "cooling"] == locks
    answer = gateway.post(chat("alpha/cooling"))
    assert (answer.status, answer.code) == (429, "rate_limited")
    assert 0 < int(answer.headers["retry-after"]) <= 90
    assert len(upstreams.requests("alpha", model="cooling")) == 1


def test_an_open_circuit_survives_kill_9(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", error(500), HEALTHY, model="broken")
    upstreams.script("alpha", error(500), model="broken")
    before = journalled(gateway)
    for _ in range(3):
        assert gateway.post(chat("alpha/broken")).status == 500
    circuits = [circuit for circuit in gateway.status()["circuits"] if circuit["model"] == "broken"]
    assert [circuit["state"] for circuit in circuits] == ["open"]
    until(lambda: journalled(gateway) >= before + 4)
    crash(gateway)
    assert [circuit for circuit in gateway.status()["circuits"] if circuit["model"] == "broken"] == circuits
    answer = gateway.post(chat("alpha/broken"))
    assert (answer.status, answer.code) == (503, "all_unavailable")
    assert len(upstreams.requests("alpha", model="broken")) == 3
