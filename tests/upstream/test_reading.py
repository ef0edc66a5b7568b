"""A body that is wanted whole, up to a limit: every adapter reads it alike, over whatever it is carried."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import pytest

from tests.upstream.loopback import FAST, HTTPX, PATIENCE_S, Answer, Rig, in_process
from troyproxy.ports import UpstreamFailed, UpstreamResponse
from troyproxy.resilience.faults import Fault

pytestmark = pytest.mark.anyio

Carrier = Callable[[Answer], AbstractAsyncContextManager[Rig]]
LARGE: Final = bytes(range(256)) * 4096
LENGTH: Final = ((b"content-type", b"text/plain"), (b"content-length", b"%d" % len(LARGE)))


@pytest.fixture(params=[FAST.over, HTTPX.over, in_process], ids=["fast", "httpx", "asgi"])
def carrier(request: pytest.FixtureRequest) -> Carrier:
    over: Carrier = request.param
    return over


async def sent(rig: Rig) -> UpstreamResponse:
    return await rig.upstream.send(rig.request())


@pytest.mark.parametrize("headers", [LENGTH, LENGTH[:1]], ids=["length", "chunked"])
@pytest.mark.parametrize("over", [0, 1, len(LARGE)])
async def test_a_body_is_read_whole_unless_it_is_over_the_limit(
    carrier: Carrier, headers: tuple[tuple[bytes, bytes], ...], over: int
) -> None:
    """What was read and what comes behind it are the body, without a gap."""
    pieces = tuple(LARGE[at : at + 100_000] for at in range(0, len(LARGE), 100_000))
    async with carrier(Answer(steps=pieces, headers=headers)) as rig:
        response, read = await sent(rig), list[bytes]()
        fits = await response.read(len(LARGE) - over, read)
        behind = [piece async for piece in response.chunks()]
        await response.aclose()
        assert (fits, b"".join(read + behind) == LARGE) == (over == 0, True)
        assert behind == [] if fits else sum(map(len, read)) > len(LARGE) - over


@pytest.mark.parametrize("limit", [0, 1])
async def test_a_body_without_a_byte_is_read_whole(carrier: Carrier, limit: int) -> None:
    async with carrier(Answer()) as rig:
        response, read = await sent(rig), list[bytes]()
        assert (await response.read(limit, read), b"".join(read)) == (True, b"")
        await response.aclose()


async def test_the_limit_is_of_what_was_decoded(carrier: Carrier) -> None:
    coded = (*LENGTH[:1], (b"content-encoding", b"gzip"))
    async with carrier(Answer(steps=(gzip.compress(LARGE),), headers=coded)) as rig:
        response, read = await sent(rig), list[bytes]()
        assert (await response.read(len(LARGE), read), b"".join(read) == LARGE) == (True, True)
        await response.aclose()
        response, read = await sent(rig), []
        assert not await response.read(len(LARGE) - 1, read)
        await response.aclose()


async def test_what_came_is_there_when_time_is_up(carrier: Carrier) -> None:
    async with carrier(Answer(steps=(b"so ", b"far", None))) as rig:
        response, read = await sent(rig), list[bytes]()
        reading = asyncio.get_running_loop().create_task(response.read(100, read))
        async with asyncio.timeout(PATIENCE_S):
            while b"".join(read) != b"so far":  # noqa: ASYNC110 -- nobody is told of a piece
                await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await response.aclose()
        assert b"".join(read) == b"so far"
        assert await asyncio.wait_for(rig.log.gone.wait(), PATIENCE_S)


async def test_what_came_before_a_cut_is_there_when_it_fails(carrier: Carrier) -> None:
    async with carrier(Answer(steps=(b"so ", b"far"), cut=True)) as rig:
        response, read = await sent(rig), list[bytes]()
        with pytest.raises(UpstreamFailed) as caught:
            await response.read(100, read)
        await response.aclose()
        assert (caught.value.fault, caught.value.body_sent, b"".join(read)) == (Fault.RESET, True, b"so far")


async def test_a_closed_response_is_not_read(carrier: Carrier) -> None:
    async with carrier(Answer(steps=(b"body",))) as rig:
        response, read = await sent(rig), list[bytes]()
        await response.aclose()
        with pytest.raises(UpstreamFailed):
            await response.read(100, read)
        assert read == []
