from __future__ import annotations

import asyncio

import pytest

from tests.fakes import FakeClock
from troyproxy.ports import ControlEvent
from troyproxy.store.store import SqlStore

pytestmark = pytest.mark.anyio


async def test_the_revision_begins_at_zero_and_a_bump_raises_it(store: SqlStore) -> None:
    assert await store.control.revision() == 0
    assert await store.control.bump() == 1
    assert await store.control.revision() == 1


async def test_concurrent_bumps_are_all_counted(store: SqlStore) -> None:
    bumps = await asyncio.gather(*(store.control.bump() for _ in range(20)))
    assert sorted(bumps) == list(range(1, 21))


async def test_an_event_reaches_those_who_have_not_seen_it(store: SqlStore, clock: FakeClock) -> None:
    assert await store.control.newest(clock.now() + 1) == 0
    assert await store.control.publish("clear", {"provider": "groq"}) == 1
    assert await store.control.publish("reload", {}) == 2
    first, second = await store.control.since(0)
    assert first == ControlEvent(first.id, clock.now(), "clear", {"provider": "groq"})
    assert await store.control.since(first.id) == [second]
    assert await store.control.since(0, limit=1) == [first]
    assert await store.control.newest(clock.now() + 1) == second.id


async def test_the_newest_event_before_a_moment_is_found(store: SqlStore, clock: FakeClock) -> None:
    await store.control.publish("clear", {})
    clock.move(5.0)
    await store.control.publish("reload", {})
    assert await store.control.newest(clock.now()) == (await store.control.since(0))[0].id
