from __future__ import annotations

import pytest

from tests.fakes import FakeResponse, Reply
from tests.proxy.rig import Rig, delta, reset
from troyproxy.ports import UpstreamFailed
from troyproxy.proxy.reader import FrameReader
from troyproxy.wire.sse import StreamTooLong

pytestmark = pytest.mark.anyio


def _reader(*steps: bytes | UpstreamFailed, limit: int = 1000) -> FrameReader:
    return FrameReader(FakeResponse(Reply(body=steps)), limit=limit)


async def test_reads_that_complete_nothing_are_read_over(rig: Rig) -> None:
    whole = delta("a")
    frames = await _reader(whole[:5], whole[5:9], whole[9:]).next()
    assert [frame.raw for frame in frames] == [whole]


async def test_the_end_is_an_empty_list_again_and_again() -> None:
    reader = _reader()
    assert (await reader.next(), await reader.next()) == ([], [])


async def test_the_unfinished_rest_comes_at_the_end_and_says_so() -> None:
    reader = _reader(b"data: x")
    assert [frame.complete for frame in await reader.next()] == [False]


async def test_a_fault_is_passed_on_and_the_unfinished_rest_is_gone() -> None:
    reader = _reader(b"data: x", reset())
    with pytest.raises(UpstreamFailed):
        await reader.next()


async def test_frames_given_back_come_first() -> None:
    reader = _reader(delta("a") + delta("b"), delta("c"))
    first, second = await reader.next()
    reader.give_back([second])
    assert [frame.raw for frame in [first, *await reader.next(), *await reader.next()]] == [
        delta("a"),
        delta("b"),
        delta("c"),
    ]


async def test_nothing_given_back_is_no_end() -> None:
    reader = _reader(delta("a"), delta("b"))
    await reader.next()
    reader.give_back([])
    assert len(await reader.next()) == 1


async def test_frames_before_one_that_is_too_long_come_out_first() -> None:
    reader = _reader(b"data: a\n\ndata: " + b"x" * 2000)
    assert len(await reader.next()) == 1
    with pytest.raises(StreamTooLong):
        await reader.next()


async def test_an_event_that_is_too_long_fails() -> None:
    with pytest.raises(StreamTooLong):
        await _reader(b"data: " + b"x" * 2000).next()
