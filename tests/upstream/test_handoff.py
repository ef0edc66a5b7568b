"""The slot between an app and the reader of its response."""

from __future__ import annotations

import asyncio

import pytest

from troyproxy.ports import UpstreamFailed
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.handoff import Handoff

pytestmark = pytest.mark.anyio
FAILURE = UpstreamFailed(Fault.RESET)


async def test_a_producer_is_one_chunk_ahead_at_most() -> None:
    slot, put = Handoff(), list[int]()

    async def produce() -> None:
        for number in range(5):
            await slot.put(b"%d" % number)
            put.append(number)

    async with asyncio.TaskGroup() as group:
        group.create_task(produce())
        for _ in range(10):
            await asyncio.sleep(0)
        ahead = list(put)
        got = [await anext(slot) for _ in range(5)]
    assert (ahead, got) == ([0], [b"0", b"1", b"2", b"3", b"4"])


async def test_several_producers_lose_nothing() -> None:
    slot = Handoff()
    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(slot.put(b"%d" % number))
        got = [await anext(slot) for _ in range(5)]
    assert sorted(got) == [b"0", b"1", b"2", b"3", b"4"]


async def test_the_end_stands_behind_what_was_put() -> None:
    slot = Handoff()
    await slot.put(b"last")
    slot.end()
    assert [chunk async for chunk in slot] == [b"last"]


async def test_only_the_first_end_counts() -> None:
    slot = Handoff()
    slot.end()
    slot.end(FAILURE)
    assert [chunk async for chunk in slot] == []


async def test_an_abandoned_slot_fails_its_reader_and_frees_its_producer() -> None:
    slot = Handoff()
    await slot.put(b"unread")
    async with asyncio.TaskGroup() as group:
        producing = group.create_task(slot.put(b"waiting"))
        await asyncio.sleep(0)
        slot.abandon(FAILURE)
    with pytest.raises(UpstreamFailed):
        await anext(slot)
    assert producing.done()


async def test_what_is_put_behind_the_end_is_dropped() -> None:
    slot = Handoff()
    slot.end()
    await slot.put(b"late")
    assert [chunk async for chunk in slot] == []
