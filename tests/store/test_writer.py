from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from tests.fakes import FakeClock
from tests.store.conftest import BRISK
from tests.store.test_requests import BARE
from tests.store.waiting import until, until_written
from troyproxy.errors import StoreUnavailable
from troyproxy.resilience.events import Cleared
from troyproxy.store.database import Database, parse_url
from troyproxy.store.pruning import Keep, Pruner
from troyproxy.store.queue import BoundedQueue
from troyproxy.store.store import SqlStore
from troyproxy.store.tables import STATE_EVENTS, USAGE_ROWS
from troyproxy.store.writer import Pace, Writer

pytestmark = pytest.mark.anyio


class Outage:
    """Makes the database of a store fail until `end`."""

    def __init__(self, store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self._database = store._database
        self.attempts = 0

    @asynccontextmanager
    async def _fail(self) -> AsyncIterator[AsyncConnection]:
        self.attempts += 1
        raise StoreUnavailable("the database cannot be used at the moment")
        yield  # makes it a generator

    async def _refuse(self, batches: object) -> None:
        async with self._fail():
            raise AssertionError(batches)

    def begin(self) -> None:
        self._patch.setattr(self._database, "insert", self._refuse)
        self._patch.setattr(self._database, "value", self._refuse)
        self._patch.setattr(self._database, "read", self._fail)
        self._patch.setattr(self._database, "write", self._fail)

    def end(self) -> None:
        self._patch.undo()


@pytest.fixture
def outage(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> Outage:
    return Outage(store, monkeypatch)


async def count(store: SqlStore) -> int:
    async with store._database.read() as connection:
        return int((await connection.execute(select(func.count()).select_from(STATE_EVENTS))).scalar_one())


async def test_what_was_queued_before_the_start_is_written_after_it(url: str, clock: FakeClock) -> None:
    store = SqlStore(url, secret_key=None, clock=clock, pace=BRISK)
    store.usage.record(BARE)
    assert store.queue_depths == {"events": 0, "usage": 1}
    await store.start()
    await until_written(store)
    assert await store.requests.find("r0") == BARE
    await store.stop()


async def test_a_batch_is_committed_although_the_event_loop_is_busy(tmp_path: Path, clock: FakeClock) -> None:
    store = SqlStore(f"sqlite:///{tmp_path}/troy.db", secret_key=None, clock=clock, pace=BRISK)
    await store.start()
    store.usage.record(BARE)
    await until(lambda: store._usage_queue._taken == 1 or not len(store._usage_queue))  # the writer is at it, or was
    with closing(sqlite3.connect(tmp_path / "troy.db")) as other:
        deadline = time.monotonic() + 30
        while not (found := other.execute("SELECT request_id FROM usage_rows").fetchall()):
            assert time.monotonic() < deadline, "the commit waits for the loop, which this test does not leave"
    assert found == [("r0",)]
    await store.stop()


async def test_more_rows_than_one_batch_are_all_written(url: str, clock: FakeClock) -> None:
    store = SqlStore(url, secret_key=None, clock=clock, pace=replace(BRISK, batch=7))
    await store.start()
    for number in range(50):
        store.usage.record(structs.replace(BARE, request_id=f"r{number}"))
    await until_written(store)
    assert len(await store.requests.recent(limit=100)) == 50
    await store.stop()


async def test_an_outage_keeps_the_rows_and_its_end_writes_them(
    store: SqlStore, outage: Outage, caplog: pytest.LogCaptureFixture
) -> None:
    outage.begin()
    store.usage.record(BARE)
    store.events.append(Cleared(1.0))
    await until(lambda: outage.attempts > 5)
    assert not store.up
    assert store.queue_depths == {"events": 1, "usage": 1}
    outage.end()
    await until_written(store)
    assert store.up
    assert await store.requests.find("r0") == BARE
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


async def test_an_idle_writer_notices_an_outage_and_its_end(store: SqlStore, outage: Outage) -> None:
    outage.begin()
    await until(lambda: not store.up)
    outage.end()
    await until(lambda: store.up)
    assert store.queue_depths == {"events": 0, "usage": 0}


async def test_an_outage_that_fills_a_queue_drops_the_oldest_and_counts_them(store: SqlStore, outage: Outage) -> None:
    outage.begin()
    for number in range(10_003):
        store.events.append(Cleared(float(number)))
    await until(lambda: outage.attempts > 3)
    assert store.queue_depths["events"] == 10_000
    assert store.dropped == {"events": 3, "usage": 0}
    outage.end()
    await until_written(store)
    assert await count(store) == 10_000


async def test_a_row_that_the_database_refuses_does_not_keep_the_others_back(
    store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    store.usage.record(structs.replace(BARE, request_id="good"))
    store.usage.record(structs.replace(BARE, request_id="bad", est_tokens=2**80))
    store.usage.record(structs.replace(BARE, request_id="also good"))
    store.events.append(Cleared(1.0))
    await until_written(store)
    assert {row.request_id for row in await store.requests.recent()} == {"good", "also good"}
    assert await count(store) == 1
    assert store.dropped == {"events": 0, "usage": 1}
    assert "dropped a row of usage_rows" in caplog.text


async def test_stopping_writes_what_waits(url: str, clock: FakeClock) -> None:
    store = SqlStore(url, secret_key=None, clock=clock, pace=replace(BRISK, linger_s=60.0, heartbeat_s=60.0, batch=2))
    await store.start()
    for number in range(5):
        store.usage.record(structs.replace(BARE, request_id=f"r{number}"))
    await store.stop()
    assert store.queue_depths == {"events": 0, "usage": 0}
    assert len(await store.requests.recent()) == 5
    await store.stop()


async def test_stopping_in_an_outage_gives_up_and_counts_what_is_lost(
    url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqlStore(url, secret_key=None, clock=clock, pace=replace(BRISK, drain_s=0.05))
    await store.start()
    Outage(store, monkeypatch).begin()
    store.usage.record(BARE)
    await store.stop()
    assert store.dropped == {"events": 0, "usage": 1}
    assert "dropped 1 rows at the stop" in caplog.text


async def test_stopping_wakes_a_writer_that_backs_off(
    url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqlStore(url, secret_key=None, clock=clock, pace=replace(BRISK, retry_s=0.01, retry_max_s=600.0))
    await store.start()
    outage = Outage(store, monkeypatch)
    outage.begin()
    store.usage.record(BARE)
    await until(lambda: outage.attempts > 3)
    outage.end()
    await store.stop()
    assert store.dropped == {"events": 0, "usage": 0}


async def test_a_store_that_was_never_started_stops(url: str, clock: FakeClock) -> None:
    store = SqlStore(url, secret_key=None, clock=clock)
    await store.stop()
    assert not store.up


async def test_a_stopped_store_starts_again(url: str, clock: FakeClock) -> None:
    store = SqlStore(url, secret_key=None, clock=clock, pace=BRISK)
    for number in range(2):
        await store.start()
        store.usage.record(structs.replace(BARE, request_id=f"r{number}"))
        await until_written(store)
        await store.stop()
    assert len(await store.requests.recent()) == 2
    await store.stop()


def a_writer(url: str, clock: FakeClock, prepare: Callable[[], object]) -> Writer:
    async def prepared() -> None:
        prepare()

    queues = {STATE_EVENTS: BoundedQueue(9), USAGE_ROWS: BoundedQueue(9)}
    database = Database(parse_url(url))
    pruner = Pruner(database, Keep(), clock=clock, pace=BRISK.pruning)
    return Writer(database, queues, prepare=prepared, pruner=pruner, pace=replace(BRISK, drain_s=5.0))


async def test_a_bug_in_the_writer_is_logged_at_once_and_raised_by_the_stop(
    url: str, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    calls = iter([StoreUnavailable("down"), LookupError("a bug")])

    def fail() -> None:
        raise next(calls)

    writer = a_writer(url, clock, fail)
    await writer.start()
    await until(lambda: "ended by a bug" in caplog.text)
    with pytest.raises(LookupError):
        await writer.stop()
    await writer._database.close()


def test_a_commit_is_promised_within_50_ms() -> None:
    assert Pace().linger_s <= 0.03
