"""A body that is wanted whole wakes its reader once, and stops its connection only where it is over the limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from troyproxy.ports import UpstreamFailed
from troyproxy.ports.upstream import MANY
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.pooled.response import HIGH, PooledResponse

pytestmark = pytest.mark.anyio

HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n"
ENDLESS: Final = b"HTTP/1.1 200 OK\r\n\r\n"
CHUNKED: Final = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class _Line:
    """A connection that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def pause(self) -> None:
        self.told.append("pause")

    def resume(self) -> None:
        self.told.append("resume")

    def begun(self, status: int) -> None: ...

    def finished(self, *, reusable: bool) -> None:
        self.told.append(f"finished {reusable}")

    def abort(self) -> None:
        self.told.append("abort")


def _response(line: _Line, *reads: bytes) -> PooledResponse:
    response = PooledResponse(line, asyncio.get_running_loop(), bodiless=False)
    for read in reads:
        response.received(read)
    return response


async def _begun(response: PooledResponse, limit: int, into: list[bytes]) -> asyncio.Task[bool]:
    """Return a read that waits."""
    reading = asyncio.get_running_loop().create_task(response.read(limit, into))
    await asyncio.sleep(0)
    assert not reading.done()
    return reading


def _wakes(response: PooledResponse) -> bool:
    return response._waiter is not None and response._waiter.done()


@pytest.mark.parametrize("framing", [HEAD % (9 * HIGH), CHUNKED])
async def test_only_the_end_of_a_body_wakes_its_reader_and_nothing_is_paused(framing: bytes) -> None:
    line, into = _Line(), list[bytes]()
    response = _response(line, framing)
    reading = await _begun(response, 10 * HIGH, into)
    part = b"x" * HIGH if b"length" in framing else b"%x\r\n%b\r\n" % (HIGH, b"x" * HIGH)
    for _ in range(8):
        response.received(part)
        assert not _wakes(response)
    response.received(part + (b"" if b"length" in framing else b"0\r\n\r\n"))
    assert (_wakes(response), await reading, b"".join(into) == b"x" * 9 * HIGH) == (True, True, True)
    assert line.told == ["finished True"]


async def test_a_body_in_one_piece_is_not_copied() -> None:
    into: list[bytes] = []
    response = _response(_Line(), HEAD % 5000)
    reading, body = await _begun(response, 5000, into), b"x" * 5000
    response.received(body)
    assert (await reading, [piece is body for piece in into]) == (True, [True])


async def test_a_body_over_its_limit_wakes_its_reader_and_flows_on() -> None:
    line, into = _Line(), list[bytes]()
    response = _response(line, HEAD % (4 * HIGH))
    reading = await _begun(response, 2 * HIGH, into)
    response.received(b"a" * 2 * HIGH)
    assert not _wakes(response)
    response.received(b"b")
    assert (_wakes(response), line.told) == (True, ["pause"])
    assert (await reading, b"".join(into) == b"a" * 2 * HIGH + b"b") == (False, True)
    assert line.told == ["pause", "resume"]
    response.received(b"c" * HIGH)
    assert await anext(response.chunks()) == b"c" * HIGH


async def test_what_had_come_before_is_read_too_and_its_connection_goes_on() -> None:
    line, into = _Line(), list[bytes]()
    response = _response(line, HEAD % (2 * HIGH), b"a" * (HIGH + 1))
    reading = await _begun(response, 2 * HIGH, into)
    assert line.told == ["pause", "resume"]
    response.received(b"b" * (HIGH - 1))
    assert (await reading, b"".join(into) == b"a" * (HIGH + 1) + b"b" * (HIGH - 1)) == (True, True)


async def test_a_great_many_small_pieces_become_few() -> None:
    into: list[bytes] = []
    response = _response(_Line(), ENDLESS)
    reading = await _begun(response, 1 << 20, into)
    for at in range(3 * MANY):
        response.received(b"%d%d" % (at % 10, at % 7))
        assert len(into) <= MANY + 3
    response.ended(whole=True)
    assert (await reading, b"".join(into)) == (
        True,
        b"".join(b"%d%d" % (at % 10, at % 7) for at in range(3 * MANY)),
    )


async def test_no_piece_is_offered_to_an_ear_meanwhile() -> None:
    heard: list[bytes] = []
    into: list[bytes] = []
    response = _response(_Line(), HEAD % 4)

    def hear(piece: bytes) -> bool:
        heard.append(piece)
        return True

    response.listen(hear)
    reading = await _begun(response, 4, into)
    response.received(b"ab")
    response.received(b"cd")
    assert (await reading, heard, b"".join(into)) == (True, [], b"abcd")


async def _closed(response: PooledResponse) -> None:
    await response.aclose()


async def _failed(response: PooledResponse) -> None:
    response.fail(Fault.RESET, "gone")


async def _malformed(response: PooledResponse) -> None:
    response.received(b"no size\r\n")


@pytest.mark.parametrize("end", [_closed, _failed, _malformed])
async def test_a_read_that_fails_leaves_what_had_come(end: Callable[[PooledResponse], Awaitable[None]]) -> None:
    into: list[bytes] = []
    response = _response(_Line(), CHUNKED)
    reading = await _begun(response, HIGH, into)
    response.received(b"2\r\nok\r\n")
    await end(response)
    with pytest.raises(UpstreamFailed):
        await reading
    assert into == [b"ok"]
