"""What survives on a SQLite file: kill -9 under load, a file that is locked or full under load, SIGTERM under load."""

from __future__ import annotations

import json
import resource
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.storm import Storm
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Upstreams, error

HINT_S: Final = 90
OPEN_S: Final = 300
WINDOW_S: Final = 0.05
"""What a crash may lose, of events and rows."""
SLACK_S: Final = 0.4
"""That window holds while the machine keeps up; here twenty clients, an upstream and a gateway share a few cores."""
TARGETS: Final = 60
FULL: Final = 4096
"""A file-size limit that the write-ahead log has passed already: no write to it succeeds."""


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    account = {"name": "A", "api_key": "sk-up-A"}
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "accounts": [account]}}}
    env = {"TROY_BREAKER_OPEN_S": str(OPEN_S), "TROY_MAX_INFLIGHT": "100"}
    with run_gateway(folder, config, **env) as running:
        yield running


def degraded(gateway: Gateway) -> list[str]:
    answer = gateway.get("/readyz")
    assert answer.status == 200
    found: list[str] = answer.json()["degraded"]
    return found


def locks(gateway: Gateway) -> dict[str, float]:
    """Return the hard locks: model → until."""
    return {lock["model"]: lock["until"] for lock in gateway.status()["cooldowns"] if not lock["soft"]}


def circuits(gateway: Gateway) -> dict[str, float]:
    """Return the open circuits: model → until."""
    return {each["model"]: each["until"] for each in gateway.status()["circuits"] if each["state"] == "open"}


def written(gateway: Gateway) -> set[str]:
    return {row["request_id"] for row in gateway.rows()}


def journalled(gateway: Gateway, model: str) -> int:
    with closing(sqlite3.connect(gateway.database, timeout=5)) as database:
        asked = "select count(*) from state_events where json_extract(payload, '$.model') = ?"
        count: int = database.execute(asked, (model,)).fetchone()[0]
    return count


def bursts(upstreams: Upstreams) -> list[str]:
    """Script targets that refuse, that break and that work; return them in the order in which a storm meets them."""
    met: list[str] = []
    for number in range(TARGETS):
        upstreams.script("alpha", error(429, retry_after=str(HINT_S)), model=f"rate-{number}")
        upstreams.script("alpha", error(500), model=f"bad-{number}")
        met += [f"alpha/{kind}-{number}" for kind in ("rate", "bad", "ok", "bad", "bad", "rate", "ok")]
    return met


def whole(row: dict[str, Any]) -> bool:
    """Whether nothing of a row is missing."""
    parsed = [json.loads(row[name]) for name in ("attempts", "skipped", "needs")]
    reached = bool(parsed[0] or parsed[1])
    return reached and row["requested_model"] and row["duration_ms"] > 0 and row["outcome"]


def test_kill_9_in_a_storm_loses_no_lock_no_circuit_and_no_row_but_of_the_last_moment(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    with Storm(gateway, bursts(upstreams)) as storm:
        storm.served(200)
        cooling, broken = locks(gateway), circuits(gateway)
        killed_at = time.time()
        gateway.kill()
    certain = killed_at - WINDOW_S - SLACK_S
    said = {told.request_id: told.status for told in storm.answers}
    gateway.start()
    after, opened, rows = locks(gateway), circuits(gateway), gateway.rows()
    assert cooling
    assert broken
    assert {name: until for name, until in cooling.items() if until - HINT_S < certain}.items() <= after.items()
    assert {name: until for name, until in broken.items() if until - OPEN_S < certain}.items() <= opened.items()
    assert {told.request_id for told in storm.answers if told.at < certain} <= {row["request_id"] for row in rows}
    assert all(whole(row) for row in rows)
    assert all(row["status"] == said.get(row["request_id"], row["status"]) for row in rows)


def test_kill_9_in_a_storm_leaves_daily_sums_that_are_those_of_the_rows(gateway: Gateway, upstreams: Upstreams) -> None:
    with Storm(gateway, bursts(upstreams)) as storm:
        storm.served(200)
        gateway.kill()
    with closing(sqlite3.connect(gateway.database, timeout=5)) as database:
        rows = database.execute("select count(*), sum(tries), sum(input_tokens) from usage_rows").fetchone()
        sums = database.execute("select sum(requests), sum(attempts), sum(input_tokens) from usage_daily").fetchone()
    gateway.start()
    assert rows[0] >= 100
    assert sums == rows


@contextmanager
def locked(gateway: Gateway) -> Iterator[None]:
    """Hold the one lock that writers of a SQLite file need."""
    with closing(sqlite3.connect(gateway.database, timeout=10, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


@contextmanager
def full(gateway: Gateway) -> Iterator[None]:
    """Let no file of the process grow, as on a full disk; its log cannot be written then either."""
    before = resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, (FULL, before[1]))
    yield
    resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("outage", [locked, full])
def test_a_database_that_cannot_be_written_under_load_fails_no_request_and_loses_nothing(
    gateway: Gateway, upstreams: Upstreams, outage: Callable[[Gateway], AbstractContextManager[None]]
) -> None:
    model = f"meanwhile-{outage.__name__}"
    upstreams.script("alpha", error(429, retry_after=str(HINT_S)), HEALTHY, model=model)
    with Storm(gateway, ["alpha/ok"], clients=5) as storm:
        storm.served(20)
        with outage(gateway):
            until(lambda: degraded(gateway) == ["database"])
            storm.served(100)
            assert gateway.post(chat(f"alpha/{model}")).status == 429
            waiting = gateway.metric("queue_depth", queue="usage"), gateway.metric("queue_depth", queue="events")
            up = gateway.metric("database_up")
        until(lambda: degraded(gateway) == [])
        storm.served(20)
    assert storm.statuses() == {200}
    assert (storm.broken, up) == (0, 0)
    assert min(waiting) > 0
    assert until(lambda: storm.ids() <= written(gateway))
    assert until(lambda: journalled(gateway, model))
    assert gateway.metric("queue_dropped_total") == 0


def test_sigterm_in_a_storm_drains_the_queues_and_loses_nothing(gateway: Gateway, upstreams: Upstreams) -> None:
    before = written(gateway)
    with Storm(gateway, bursts(upstreams)) as storm:
        storm.served(100)
        gateway.signal(signal.SIGTERM)
        assert gateway.wait() == 0
    rows = written(gateway) - before
    gateway.start()
    assert rows == storm.ids()
