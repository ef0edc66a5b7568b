"""Four workers that share what they learn through Redis: one finds out for all, with the store and without it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.pins import Pin, pids, pins
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Upstreams, error
from tests.services import Redis, redis

WORKERS: Final = 4


@pytest.fixture(scope="module")
def server() -> Iterator[Redis]:
    with redis() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams, server: Redis) -> Iterator[Gateway]:
    accounts = [{"name": name, "api_key": f"sk-up-{name}"} for name in ("A", "B")]
    config = {"providers": {"beta": {"base_url": upstreams.base_url("beta"), "accounts": accounts}}}
    with run_gateway(folder, config, "--workers", str(WORKERS), TROY_REDIS_URL=server.url) as running:
        yield running


@pytest.fixture
def crew(gateway: Gateway) -> Iterator[list[Pin]]:
    with pins(gateway, WORKERS) as met:
        yield met


def script(upstreams: Upstreams, model: str) -> None:
    """Let account A be limited and B be well."""
    upstreams.script("beta", error(429, retry_after="60"), key="sk-up-A", model=model)
    upstreams.script("beta", HEALTHY, key="sk-up-B", model=model)


def calls(upstreams: Upstreams, model: str) -> int:
    return len(upstreams.requests("beta", key="sk-up-A", model=model))


def discover(crew: list[Pin], model: str) -> None:
    """Let the first worker find the limit out, and wait until all know."""
    assert crew[0].chat(f"beta/{model}").status == 200
    until(lambda: all(len(pin.cooldowns(model)) == 1 for pin in crew))


def test_what_one_worker_finds_out_all_honour(crew: list[Pin], upstreams: Upstreams) -> None:
    script(upstreams, "shared")
    discover(crew, "shared")
    assert {crew[turn % WORKERS].chat("beta/shared").status for turn in range(200)} == {200}
    assert calls(upstreams, "shared") == 1


def test_a_clearing_reaches_every_worker(crew: list[Pin], upstreams: Upstreams) -> None:
    script(upstreams, "cleared")
    discover(crew, "cleared")
    assert crew[-1].admin("POST", "/api/cooldowns/clear", {"model": "cleared"}).json()["everywhere"] is True
    until(lambda: not any(pin.cooldowns("cleared") for pin in crew))
    assert calls(upstreams, "cleared") == 1


def test_a_reload_reaches_every_worker(gateway: Gateway, crew: list[Pin]) -> None:
    before = [pin.admin("GET", "/api/status").json()["config"]["revision"] for pin in crew]
    answer = gateway.admin("POST", "/api/config/reload")
    revision = answer.json()["revision"]
    assert revision > max(before)
    until(lambda: {pin.admin("GET", "/api/status").json()["config"]["revision"] for pin in crew} == {revision})


def test_a_redis_that_dies_makes_nobody_forget(
    gateway: Gateway, crew: list[Pin], upstreams: Upstreams, server: Redis
) -> None:
    script(upstreams, "kept")
    discover(crew, "kept")
    server.stop()
    assert {crew[turn % WORKERS].chat("beta/kept").status for turn in range(40)} == {200}
    until(lambda: gateway.metric("shared_state_up") == 0)
    os.kill(crew[0].pid, signal.SIGKILL)
    until(lambda: pids(gateway, WORKERS)["worker-1"] != crew[0].pid)
    assert {gateway.post(chat("beta/kept")).status for _ in range(40)} == {200}
    assert calls(upstreams, "kept") == 1
    server.start()
    until(lambda: gateway.metric("shared_state_up") == 1)


def test_the_start_says_that_they_share(gateway: Gateway) -> None:
    said = (gateway.folder / "gateway.log").read_text("utf-8")
    assert said.count("4 workers serve and share cooldowns and circuits") == 1
