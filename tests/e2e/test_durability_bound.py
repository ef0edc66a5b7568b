"""An outage that outlasts the queues: the oldest rows go, each is counted where an operator sees it, memory stays."""

from __future__ import annotations

import sqlite3
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from tests.api.house import House, build
from tests.fakes import FakeClock
from tests.store.test_requests import BARE
from tests.store.waiting import until
from troyproxy.resilience.events import Cleared
from troyproxy.store import database
from troyproxy.store.store import QUEUE_BOUND

pytestmark = pytest.mark.anyio

OVER: Final = 500
FLAT: Final = 1_000_000
"""Bytes; the rows that came in while the queue was full took more than ten times as many."""


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setattr(database, "BUSY_MS", 1)
    found = build(tmp_path, FakeClock(manual=True))
    await found.gateway.life.start()
    yield found
    await found.gateway.life.stop()


@pytest.fixture
def outage(house: House, tmp_path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(tmp_path / "troy.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


def record(house: House, first: int, last: int) -> None:
    for number in range(first, last):
        house.store.usage.record(replace(BARE, request_id=f"r{number}"))
        house.store.events.append(Cleared(float(number)))


async def metric(house: House, name: str) -> dict[str, float]:
    page = (await house.ask("GET", "/metrics")).body.decode()
    samples = (sample for family in text_string_to_metric_families(page) for sample in family.samples)
    return {sample.labels["queue"]: sample.value for sample in samples if sample.name == f"troyproxy_{name}"}


@pytest.mark.usefixtures("outage")
async def test_rows_beyond_the_bound_are_dropped_and_counted_in_the_metrics(house: House) -> None:
    record(house, 0, QUEUE_BOUND + OVER)
    await until(lambda: not house.store.up)
    assert await metric(house, "queue_dropped_total") == {"events": OVER, "usage": OVER}
    assert await metric(house, "queue_depth") == {"events": QUEUE_BOUND, "usage": QUEUE_BOUND}
    assert (await house.get("/readyz"))["degraded"] == ["database"]


@pytest.mark.usefixtures("outage")
async def test_memory_stays_once_the_queues_are_full(house: House) -> None:
    record(house, 0, QUEUE_BOUND + OVER)
    tracemalloc.start()
    try:
        record(house, 0, QUEUE_BOUND)
        before = tracemalloc.get_traced_memory()[0]
        record(house, 0, QUEUE_BOUND)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert before > 5 * FLAT
    assert grown < FLAT
