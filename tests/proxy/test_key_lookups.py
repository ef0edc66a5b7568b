"""Keys that nobody has seen before: how the authenticator asks the database for many of them at once."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes import FakeClock, settle
from tests.proxy.door import STORED, WRONG, Desk
from troyproxy.catalog.keys import Key
from troyproxy.errors import Overloaded
from troyproxy.proxy import authenticator

pytestmark = pytest.mark.anyio


@pytest.fixture
def desk(clock: FakeClock) -> Desk:
    return Desk(clock)


async def test_requests_with_one_key_at_the_same_moment_are_one_lookup(desk: Desk) -> None:
    names = await asyncio.gather(*(desk.name(STORED) for _ in range(20)))
    assert (set(names), desk.keys.lookups) == ({"stored"}, 1)


class _Busy:
    """A database whose lookups wait until they may go on; `most` is how many there were at once."""

    def __init__(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate, self.now, self.most = asyncio.Event(), 0, 0
        self._find = desk.keys.find
        monkeypatch.setattr(desk.keys, "find", self.find)

    async def find(self, digest: bytes) -> Key | None:
        self.now += 1
        self.most = max(self.most, self.now)
        await self.gate.wait()
        self.now -= 1
        return await self._find(digest)


def _flood(desk: Desk, count: int) -> list[asyncio.Task[bool]]:
    loop = asyncio.get_running_loop()
    return [loop.create_task(desk.refuses(f"sk-troy-{n:048x}")) for n in range(count)]


async def test_a_flood_of_wrong_keys_is_looked_up_a_few_at_a_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = _Busy(desk, monkeypatch)
    flood = _flood(desk, 50)
    await settle()
    busy.gate.set()
    assert all(await asyncio.gather(*flood))
    assert busy.most == authenticator.LOOKUPS


async def test_a_known_key_does_not_wait_behind_a_flood(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.name(STORED)
    busy = _Busy(desk, monkeypatch)
    flood = _flood(desk, 50)
    await settle()
    assert await desk.name(STORED) == "stored"
    busy.gate.set()
    await asyncio.gather(*flood)


async def test_more_unknown_keys_than_may_wait_are_told_that_we_are_busy(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authenticator, "QUEUE", 10)
    busy = _Busy(desk, monkeypatch)
    flood = _flood(desk, 10)
    await settle()
    with pytest.raises(Overloaded):
        await desk.name(WRONG)
    busy.gate.set()
    await asyncio.gather(*flood)
    assert await desk.refuses(WRONG)


async def test_who_hangs_up_does_not_end_the_lookup_of_others(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = _Busy(desk, monkeypatch)
    first, second = (asyncio.get_running_loop().create_task(desk.name(STORED)) for _ in range(2))
    await settle()
    first.cancel()
    busy.gate.set()
    assert await second == "stored"


async def test_what_is_asked_after_a_change_does_not_join_a_lookup_from_before(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = _Busy(desk, monkeypatch)
    early = asyncio.get_running_loop().create_task(desk.name(STORED))
    await settle()
    desk.door.forget()
    late = asyncio.get_running_loop().create_task(desk.name(STORED))
    await settle()
    assert busy.now == 2
    busy.gate.set()
    assert (await early, await late) == ("stored", "stored")
