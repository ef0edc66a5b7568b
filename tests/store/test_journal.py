from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import insert

from tests.fakes import FakeClock
from tests.store.conftest import BRISK
from tests.store.waiting import until_written
from troyproxy.resilience.classes import ErrorClass, Scope
from troyproxy.resilience.events import (
    CircuitClosed,
    CircuitHalfOpened,
    CircuitOpened,
    Cleared,
    Event,
    Failed,
    Succeeded,
)
from troyproxy.store.store import SqlStore
from troyproxy.store.tables import STATE_EVENTS

pytestmark = pytest.mark.anyio


def failed(at: float, *, cooldown_s: float | None = 30.0) -> Failed:
    return Failed(
        at=at,
        provider="groq",
        model="m",
        account="a",
        error_class=ErrorClass.RATE,
        hint_s=None,
        cooldown_s=cooldown_s,
        soft=False,
        scope=Scope.PAIR,
        started_at=at - 1,
        level=3,
        counts=True,
    )


@pytest.fixture
async def neighbour(url: str, clock: FakeClock, store: SqlStore) -> AsyncIterator[SqlStore]:
    """Another instance on the same database."""
    opened = SqlStore(url, secret_key=None, clock=clock, source="neighbour", pace=BRISK)
    await opened.start()
    yield opened
    await opened.stop()


async def journalled(store: SqlStore, *events: Event) -> None:
    for event in events:
        store.events.append(event)
    await until_written(store)


async def test_our_events_come_back_whole_and_in_their_order(store: SqlStore, clock: FakeClock) -> None:
    now = clock.now()
    events: list[Event] = [
        failed(now),
        CircuitOpened(now, "groq", "m", now + 30, 30.0),
        CircuitHalfOpened(now + 30, "groq", "m"),
        CircuitClosed(now + 29, "groq", "m"),
        Succeeded(now, "groq", "m", "a", now - 1),
        Cleared(now, provider="groq"),
    ]
    await journalled(store, *events)
    assert await store.events.replay() == events


async def test_a_restart_finds_what_the_process_before_wrote(store: SqlStore, url: str, clock: FakeClock) -> None:
    await journalled(store, failed(clock.now()))
    again = SqlStore(url, secret_key=None, clock=clock, pace=BRISK)
    assert await again.events.replay() == [failed(clock.now())]
    await again.stop()


async def test_events_past_their_longest_effect_are_left_out(store: SqlStore, clock: FakeClock) -> None:
    await journalled(store, failed(clock.now() - 5400), failed(clock.now() - 5399))
    assert await store.events.replay() == [failed(clock.now() - 5399)]


async def test_of_a_neighbour_the_locks_are_taken_without_their_counts(
    store: SqlStore, neighbour: SqlStore, clock: FakeClock
) -> None:
    await journalled(neighbour, failed(clock.now()), failed(clock.now(), cooldown_s=None))
    (event,) = await store.events.replay()
    assert isinstance(event, Failed)
    assert (event.cooldown_s, event.counts, event.level) == (30.0, False, 0)


async def test_of_a_neighbour_the_circuits_still_open_and_the_clears_are_taken(
    store: SqlStore, neighbour: SqlStore, clock: FakeClock
) -> None:
    now = clock.now()
    closed = CircuitOpened(now, "groq", "closed", now + 30, 30.0)
    still_open = CircuitOpened(now, "groq", "open", now + 30, 30.0)
    cleared = Cleared(now)
    await journalled(
        neighbour,
        closed,
        still_open,
        CircuitHalfOpened(now, "groq", "closed"),
        CircuitClosed(now, "groq", "closed"),
        Succeeded(now, "groq", "closed", "a", now),
        cleared,
    )
    assert await store.events.replay() == [still_open, cleared]


async def test_unreadable_rows_are_skipped_and_counted(
    store: SqlStore, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    row = {"at": clock.now(), "version": 9, "source": "local", "type": "novel", "payload": {"v": 9, "type": "novel"}}
    async with store._database.write() as connection:
        await connection.execute(insert(STATE_EVENTS), row)
    await journalled(store, failed(clock.now()))
    assert await store.events.replay() == [failed(clock.now())]
    assert "skipped 1 unreadable" in caplog.text


async def test_an_event_written_twice_for_a_lost_answer_is_read_once(store: SqlStore, clock: FakeClock) -> None:
    twice, after = failed(clock.now()), failed(clock.now() + 1)
    await journalled(store, twice, after, twice, after)
    assert await store.events.replay() == [twice, after]
