"""Fifty requests through failing combos; exported and simulated, the same policy comes to the same attempts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.gateway import ROOT, Gateway, chat, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Reply, Say, Upstreams, error

NAMES: Final = ("alpha", "beta", "gamma")
REQUESTS: Final = 50
# No lock ends while the test runs: whether it ends before or after a request comes would be a matter of a millisecond.
ALPHA: Final[tuple[Reply | Say, ...]] = (
    HEALTHY,
    error(400, "bad"),
    error(413, "too large"),
    error(400, "too long", "context_length_exceeded"),
    HEALTHY,
    error(429, "slow down", retry_after="60"),
    HEALTHY,
    error(403, "not in your region"),
)
BETA: Final[tuple[Reply | Say, ...]] = (
    HEALTHY,
    error(429, "quota exceeded"),
    HEALTHY,
    HEALTHY,
    error(404, "no such model", "model_not_found"),
)


def config(upstreams: Upstreams, **members: list[str]) -> dict[str, Any]:
    accounts = [{"name": name, "api_key": f"sk-up-{name}-0123456789"} for name in ("a", "b")]
    return {
        "providers": {name: {"base_url": upstreams.base_url(name), "accounts": accounts} for name in NAMES},
        "combos": {
            "daily": {"members": members.get("daily", ["alpha/m1", "beta/m1", "gamma/m1"])},
            "turns": {"strategy": "round-robin", "members": members.get("turns", ["alpha/m2", "beta/m2", "gamma/m2"])},
        },
    }


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    for model in ("m1", "m2"):
        upstreams.script("alpha", *ALPHA, HEALTHY, model=model)
        upstreams.script("beta", *BETA, HEALTHY, model=model)
    with run_gateway(folder, config(upstreams)) as running:
        yield running


def troyproxy(gateway: Gateway, *words: str) -> str:
    """Run a command where the gateway runs, and return its output."""
    ours = {"PYTHONPATH": str(ROOT), "TROY_DATABASE_URL": f"sqlite+aiosqlite:///{gateway.database}"}
    done = subprocess.run(
        [sys.executable, "-m", "troyproxy", *words],
        cwd=gateway.folder,
        env={**os.environ, **ours},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(gateway: Gateway, number: int) -> None:
    """Send one of the requests: whole or streamed, to this combo or that."""
    asked = chat("turns" if number % 2 else "daily")
    if number % 3:
        gateway.post(asked)
        return
    with closing(gateway.stream(asked)) as answer:
        answer.whole()


@pytest.fixture(scope="module")
def trace(gateway: Gateway) -> str:
    """The name of the trace of all requests."""
    for number in range(REQUESTS):
        ask(gateway, number)
    until(lambda: len(gateway.rows()) == REQUESTS)
    troyproxy(gateway, "requests", "export", "--out", "trace.jsonl")
    return "trace.jsonl"


def test_the_same_policy_comes_to_the_same_attempts(gateway: Gateway, trace: str) -> None:
    told = json.loads(troyproxy(gateway, "simulate", trace, "--policy", "troyproxy.yaml"))
    [again] = told["policies"]
    live = [len(json.loads(row["attempts"])) for row in gateway.rows()]
    assert told["recorded"]["attempts"] == again["attempts"] == sum(live) > REQUESTS
    assert again["outcomes_from"]["recorded"] == again["attempts"]
    for part in ("requests", "outcomes", "members", "accounts"):
        assert again[part] == told["recorded"][part]


def test_another_policy_is_served_by_others(gateway: Gateway, upstreams: Upstreams, trace: str) -> None:
    other = config(upstreams, daily=["gamma/m1", "beta/m1"], turns=["gamma/m2"])
    (gateway.folder / "other.yaml").write_text(json.dumps(other), encoding="utf-8")
    words = ("--policy", "troyproxy.yaml", "--policy", "other.yaml")
    first, second = json.loads(troyproxy(gateway, "simulate", trace, *words))["policies"]
    assert set(first["members"]) >= {"alpha/m1", "alpha/m2"}
    assert set(second["members"]) <= {"gamma/m1", "gamma/m2", "beta/m1"}
    assert second["members"]["gamma/m1"] > 0


def test_no_prompt_and_no_secret_is_in_the_trace(gateway: Gateway, trace: str) -> None:
    text = (gateway.folder / trace).read_text(encoding="utf-8")
    assert text.count("\n") == REQUESTS + 1
    for told in ("sk-", "slow down", '"hi"', "messages"):
        assert told not in text
