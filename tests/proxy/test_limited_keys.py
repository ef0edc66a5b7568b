"""What the keeper of limits hears of keys that nobody uses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from tests.fake_store import FakeKeys
from tests.fakes import FakeClock
from tests.proxy.limited import CENT, Instance, key
from troyproxy.catalog.keys import Key
from troyproxy.catalog.snapshot import Snapshot, build
from troyproxy.errors import StoreUnavailable
from troyproxy.proxy.limited_keys import LOOK_S, LimitedKeys

pytestmark = pytest.mark.anyio

SPENT = ("k", "day", 0.0)


class CountedKeys(FakeKeys):
    """Counts readings of the whole list."""

    readings = 0
    list_down = False

    async def list(self) -> list[Key]:
        self.readings += 1
        if self.list_down:
            raise StoreUnavailable("down")
        return await super().list()


class Desk:
    def __init__(self, stored: Sequence[Key] = (), filed: Sequence[Key] = ()) -> None:
        self.clock, self.instance = FakeClock(manual=True), Instance()
        self.stored, self.snapshot = CountedKeys(*stored), build([], keys=filed)
        self.keys = LimitedKeys(self.instance.keeper, self.stored, self._current, self.clock)

    def _current(self) -> Snapshot:
        return self.snapshot

    def shown(self) -> list[tuple[str, str, float]]:
        return list(self.instance.keeper.budgets_left())

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        task = asyncio.get_running_loop().create_task(self.keys.follow())
        await asyncio.sleep(0)
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_keys_are_read_after_a_change_and_only_then() -> None:
    desk = Desk()
    async with desk.following():
        await desk.clock.advance(5 * LOOK_S)
        assert desk.stored.readings == 0
        desk.keys.written()
        await desk.clock.advance(5 * LOOK_S)
        assert desk.stored.readings == 1


async def test_a_key_of_the_database_that_lost_its_budget_is_not_shown_any_more() -> None:
    desk = Desk([key({})])
    await desk.instance.spend(key(CENT), 1.0)
    async with desk.following():
        assert desk.shown() == [SPENT]
        desk.keys.written()
        await desk.clock.advance(LOOK_S)
        assert desk.shown() == []


async def test_a_key_of_the_file_keeps_its_own() -> None:
    desk = Desk(filed=[replace(key(CENT), digest=b"d")])
    await desk.instance.spend(key(CENT), 1.0)
    async with desk.following():
        desk.keys.written()
        await desk.clock.advance(LOOK_S)
        assert desk.shown() == [SPENT]


async def test_a_database_that_is_down_is_asked_again() -> None:
    desk = Desk([key({})])
    await desk.instance.spend(key(CENT), 1.0)
    async with desk.following():
        desk.stored.list_down = True
        desk.keys.written()
        await desk.clock.advance(2 * LOOK_S)
        assert desk.shown() == [SPENT]
        desk.stored.list_down = False
        await desk.clock.advance(LOOK_S)
        assert desk.shown() == []
