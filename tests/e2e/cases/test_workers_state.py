"""Field case BM-04 without Redis: each worker finds a limit out once, and neither a locked store nor a restart forgets.

With Redis one discovery is enough for all: `tests/e2e/test_workers_redis.py` and `tests/e2e/test_two_instances.py`.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cases.house import failed, provider, secret, together
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.pins import pids, pins
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Upstreams, error

WORKERS: Final = 4
KEY_A: Final = secret("alpha", "A")
LIMITED: Final = error(429, "slow down", retry_after="60")


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {"providers": {"alpha": provider(upstreams, "alpha", "AB")}}
    with run_gateway(folder, config, "--workers", str(WORKERS)) as running:
        yield running


def discovered(upstreams: Upstreams, model: str) -> int:
    """Return how often the limited account was called."""
    return len(upstreams.requests("alpha", model=model, key=KEY_A))


def test_bm_04_a_limit_is_found_out_once_by_each_worker_and_outlives_the_store_and_a_restart(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    upstreams.script("alpha", LIMITED, key=KEY_A, model="bm04")
    upstreams.script("alpha", HEALTHY, key=secret("alpha", "B"), model="bm04")
    with pins(gateway, WORKERS) as crew:
        assert {crew[turn % WORKERS].chat("alpha/bm04").status for turn in range(200)} == {200}
        assert discovered(upstreams, "bm04") == WORKERS
        failed(gateway, "alpha", "bm04", least=WORKERS)
        victim = crew[1].pid
        with closing(sqlite3.connect(gateway.database, timeout=5, isolation_level=None)) as database:
            database.execute("begin exclusive")  # nobody can write while this is held
            answers = together(gateway, [chat("alpha/bm04")] * 100)
            assert {answer.status for answer in answers} == {200}
            assert {crew[turn % WORKERS].chat("alpha/bm04").status for turn in range(40)} == {200}
            database.execute("rollback")
        assert discovered(upstreams, "bm04") == WORKERS
    before = pids(gateway, WORKERS)
    name = next(name for name, pid in before.items() if pid == victim)
    os.kill(victim, signal.SIGKILL)
    until(lambda: pids(gateway, WORKERS)[name] != victim)
    with pins(gateway, WORKERS) as crew:
        assert {pin.chat("alpha/bm04").status for pin in crew for _ in range(10)} == {200}
        assert all(len(pin.cooldowns("bm04")) == 1 for pin in crew)
    assert discovered(upstreams, "bm04") == WORKERS
