"""What is past its time goes, in small portions; the rest and the daily sums stay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from msgspec import structs
from sqlalchemy import Table, func, select

from tests.fakes import FakeClock
from tests.store.conftest import BRISK
from tests.store.test_requests import BARE
from tests.store.waiting import until_written
from troyproxy.errors import StoreUnavailable
from troyproxy.resilience.events import Cleared
from troyproxy.store.database import Database, parse_url
from troyproxy.store.pruning import DAY_S, Keep, Pruner, PruningPace
from troyproxy.store.store import SqlStore
from troyproxy.store.tables import STATE_EVENTS, USAGE_DAILY, USAGE_ROWS

pytestmark = pytest.mark.anyio

PACE = PruningPace(rows=4, portions=3)
KEEP = Keep(events_s=5400.0, usage_days=90)


@pytest.fixture
async def database(url: str, anyio_backend: str) -> AsyncIterator[Database]:
    opened = Database(parse_url(url))
    yield opened
    await opened.close()


async def count(database: Database, table: Table) -> int:
    async with database.read() as connection:
        return int((await connection.execute(select(func.count()).select_from(table))).scalar_one())


async def fill(url: str, clock: FakeClock, ages_days: list[float], *, events: bool = False) -> None:
    """Store a request or an event of each age."""
    store = SqlStore(url, secret_key=None, clock=clock, pace=BRISK)
    await store.start()
    for number, age in enumerate(ages_days):
        at = clock.now() - age * DAY_S
        if events:
            store.events.append(Cleared(at))
        else:
            store.usage.record(structs.replace(BARE, request_id=f"r{number}", at=at))
    await until_written(store)
    await store.stop()


async def sweep(pruner: Pruner) -> int:
    """Let one run come to its end and return how many steps it took."""
    await pruner.step()
    steps = 1
    while pruner.busy:
        await pruner.step()
        steps += 1
    return steps


async def test_usage_rows_past_their_days_go_and_the_others_stay(
    url: str, database: Database, clock: FakeClock
) -> None:
    await fill(url, clock, [0, 89.9, 90.1, 200])
    pruner = Pruner(database, KEEP, clock=clock, pace=PACE)
    clock.move(60)
    await sweep(pruner)
    async with database.read() as connection:
        left = (await connection.execute(select(USAGE_ROWS.c.request_id).order_by(USAGE_ROWS.c.request_id))).scalars()
        assert list(left) == ["r0", "r1"]


async def test_the_sums_of_pruned_rows_stay(url: str, database: Database, clock: FakeClock) -> None:
    await fill(url, clock, [100, 100, 100])
    pruner = Pruner(database, KEEP, clock=clock, pace=PACE)
    clock.move(60)
    await sweep(pruner)
    async with database.read() as connection:
        assert (await connection.execute(select(USAGE_DAILY.c.requests))).scalar_one() == 3
    assert await count(database, USAGE_ROWS) == 0


async def test_no_days_means_for_ever(url: str, database: Database, clock: FakeClock) -> None:
    await fill(url, clock, [100, 9000])
    pruner = Pruner(database, replace(KEEP, usage_days=0), clock=clock, pace=PACE)
    clock.move(60)
    await sweep(pruner)
    assert await count(database, USAGE_ROWS) == 2


async def test_a_run_deletes_a_bounded_number_and_the_next_one_comes_soon(
    url: str, database: Database, clock: FakeClock
) -> None:
    await fill(url, clock, [100.0] * 30)
    pruner = Pruner(database, KEEP, clock=clock, pace=PACE)
    clock.move(60)
    left = []
    for _ in range(5):
        await sweep(pruner)
        left.append(await count(database, USAGE_ROWS))
        clock.move(1)
    # Of three portions a run, two find that no event is old.
    assert left == [26, 22, 18, 14, 10]


async def test_a_step_deletes_one_portion(url: str, database: Database, clock: FakeClock) -> None:
    await fill(url, clock, [1.0] * 10, events=True)
    pruner = Pruner(database, KEEP, clock=clock, pace=PACE)
    clock.move(60)
    await pruner.step()
    assert (await count(database, STATE_EVENTS), pruner.busy) == (6, True)


async def test_nothing_happens_before_the_first_run_is_due(url: str, database: Database, clock: FakeClock) -> None:
    await fill(url, clock, [1.0] * 3, events=True)
    pruner = Pruner(database, KEEP, clock=clock, pace=PACE)
    clock.move(59)
    await sweep(pruner)
    assert await count(database, STATE_EVENTS) == 3


async def test_after_a_finished_run_the_next_one_is_a_minute_away(
    url: str, database: Database, clock: FakeClock
) -> None:
    pruner = Pruner(database, KEEP, clock=clock, pace=PACE)
    clock.move(60)
    await sweep(pruner)
    await fill(url, clock, [1.0], events=True)
    clock.move(59)
    await sweep(pruner)
    assert await count(database, STATE_EVENTS) == 1
    clock.move(1)
    await sweep(pruner)
    assert await count(database, STATE_EVENTS) == 0


async def test_a_step_that_fails_is_taken_again(
    url: str, database: Database, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(url, clock, [1.0], events=True)
    pruner = Pruner(database, KEEP, clock=clock, pace=PACE)
    clock.move(60)

    @asynccontextmanager
    async def fail() -> AsyncIterator[None]:
        raise StoreUnavailable("down")
        yield  # makes it a generator

    with monkeypatch.context() as patch:
        patch.setattr(database, "write", fail)
        with pytest.raises(StoreUnavailable):
            await pruner.step()
    await sweep(pruner)
    assert await count(database, STATE_EVENTS) == 0


async def test_instances_that_prune_at_once_do_each_other_no_harm(url: str, clock: FakeClock) -> None:
    await fill(url, clock, [100.0] * 60)
    databases = [Database(parse_url(url)) for _ in range(3)]
    pruners = [Pruner(each, KEEP, clock=clock, pace=replace(PACE, portions=30)) for each in databases]
    clock.move(60)
    await asyncio.gather(*map(sweep, pruners))
    for pruner in pruners:  # what one skipped because another was at it
        clock.move(60)
        await sweep(pruner)
    assert await count(databases[0], USAGE_ROWS) == 0
    for each in databases:
        await each.close()


async def test_a_store_prunes_by_itself_and_writes_meanwhile(url: str, clock: FakeClock) -> None:
    store = SqlStore(url, secret_key=None, clock=clock, pace=replace(BRISK, pruning=PruningPace(rows=1)))
    await store.start()
    for age in range(5):
        store.events.append(Cleared(clock.now() - 5400 - age))
    store.events.append(Cleared(clock.now()))
    await until_written(store)
    clock.move(60)
    fresh = structs.replace(BARE, at=clock.now())
    store.usage.record(fresh)
    await until_count(lambda: count(store._database, STATE_EVENTS), 1)
    await until_written(store)
    assert await store.requests.find(BARE.request_id) == fresh
    await store.stop()


async def until_count(counted: Callable[[], Awaitable[int]], wanted: int) -> None:
    async with asyncio.timeout(30):
        while await counted() != wanted:  # noqa: ASYNC110 - nothing tells when rows are gone
            await asyncio.sleep(0.002)


async def test_published_events_are_pruned_too_and_their_numbers_never_return(
    store: SqlStore, clock: FakeClock
) -> None:
    await store.control.publish("reload", {})
    (old,) = await store.control.since(0)
    clock.move(5461)
    async with asyncio.timeout(30):
        while await store.control.since(0):  # noqa: ASYNC110 - nothing tells when rows are gone
            await asyncio.sleep(0.002)
    await store.control.publish("reload", {})
    assert (await store.control.since(old.id))[0].id > old.id
