"""Nobody is ahead of anybody, in either direction; and what becomes of connections that idle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.upstream.loopback import FAST, PATIENCE_S, Connection, Rig, read
from tests.upstream.pooled.rigs import ANSWER, CHUNKED, eventually, pool_of, saying, sent
from troyproxy.upstream.pooled.response import HIGH

pytestmark = pytest.mark.anyio


# --- nobody is ahead ---


@asynccontextmanager
async def flooding(head: bytes, piece: bytes) -> AsyncIterator[tuple[Rig, list[int]]]:
    """A server that sends *piece* over and over, and how much of it the sockets took."""
    taken = [0]

    async def handle(conn: Connection) -> None:
        await conn.request()
        await conn.write(head)
        while True:
            await conn.write(piece)
            taken[0] += len(piece)

    async with FAST.over(handle) as rig:
        yield rig, taken


@pytest.mark.parametrize("framing", ["chunked", "close"])
async def test_an_upstream_is_not_ahead_of_its_reader(framing: str) -> None:
    data = b"x" * 65_536
    head, piece = (
        (CHUNKED, b"10000\r\n" + data + b"\r\n") if framing == "chunked" else (b"HTTP/1.1 200 OK\r\n\r\n", data)
    )
    async with flooding(head, piece) as (rig, taken):
        response = await sent(rig)
        before = -1
        while before != taken[0]:  # the sockets are full: nothing moves any more
            before = taken[0]
            for _ in range(200):
                await asyncio.sleep(0)
        held = response._parser.held
        sizes = [len(await anext(response.chunks())) for _ in range(200)]
        assert HIGH < held <= HIGH + (1 << 18) + 65_536
        assert max(sizes) <= HIGH + (1 << 18) + 65_536
        assert sum(sizes) > before
        await response.aclose()


async def test_a_paused_connection_is_read_again_when_its_answer_ends() -> None:
    large = b"x" * (HIGH + 1)
    async with FAST.over(
        saying(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (len(large) + 1), large, b"x")
    ) as rig:
        response = await sent(rig)
        await eventually(lambda: response._parser.held > HIGH)
        assert len(await read(response)) == len(large) + 1


async def test_a_large_body_is_written_as_the_peer_takes_it() -> None:
    body = bytes(range(256)) * 40_000

    async def handle(conn: Connection) -> None:
        await conn.reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await go_on.wait()
        got.append(await conn.reader.readexactly(len(body)))
        await conn.write(ANSWER)
        await conn.left()

    arrived, go_on, got = asyncio.Event(), asyncio.Event(), list[bytes]()
    async with FAST.over(handle) as rig, asyncio.TaskGroup() as group:
        sending = group.create_task(sent(rig, body))
        await arrived.wait()
        (connection,) = pool_of(rig)._living
        await eventually(lambda: not connection._writable)
        unsent = connection._unsent
        go_on.set()
        assert (unsent is not None, await read(await sending), got == [body]) == (True, b"ok", True)
        assert pool_of(rig).used == 1


@pytest.mark.parametrize("status", [b"413 Too Large", b"200 OK"])
async def test_an_answer_may_come_before_the_body_is_sent(status: bytes) -> None:
    async def handle(conn: Connection) -> None:
        await conn.reader.readuntil(b"\r\n\r\n")
        await conn.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 2\r\n\r\nno")
        await conn.left()

    async with FAST.over(handle) as rig:
        response = await sent(rig, b"x" * 20_000_000)
        assert (str(response.status).encode(), await read(response)) == (status[:3], b"no")
        await eventually(lambda: pool_of(rig).used == 0)
        assert await asyncio.wait_for(rig.log.gone.wait(), PATIENCE_S)


async def test_the_body_goes_on_while_a_good_answer_streams() -> None:
    body = b"x" * 20_000_000

    async def handle(conn: Connection) -> None:
        await conn.reader.readuntil(b"\r\n\r\n")
        await conn.write(CHUNKED + b"2\r\nok\r\n")
        await conn.reader.readexactly(len(body))
        await conn.write(b"1\r\n!\r\n0\r\n\r\n")
        await conn.left()

    async with FAST.over(handle) as rig:
        assert await read(await sent(rig, body)) == b"ok!"
        assert pool_of(rig).used == 1


# --- idle ---


@pytest.mark.parametrize("words", [b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n", b"\r\n", b""])
async def test_what_an_idle_connection_says_ends_it(words: bytes) -> None:
    """Words while nothing was asked are no answer (RFC 9112, section 9.2); no words are its end."""

    async def handle(conn: Connection) -> None:
        await conn.request()
        await conn.write(ANSWER)
        await idle.wait()
        if words:
            await conn.write(words)
            await conn.left()

    idle = asyncio.Event()
    async with FAST.over(handle) as rig:
        await read(await sent(rig))
        idle.set()
        await eventually(lambda: pool_of(rig).used == 0)
        assert (await read(await sent(rig)), rig.log.connections) == (b"ok", 2)


async def test_an_idle_connection_is_closed_in_time() -> None:
    async def handle(conn: Connection) -> None:
        await conn.request()
        await conn.write(ANSWER)
        await conn.left()

    async with FAST.over(handle, keepalive_s=0.01) as rig:
        await read(await sent(rig))
        assert await asyncio.wait_for(rig.log.gone.wait(), PATIENCE_S)
        assert pool_of(rig).used == 0


async def test_a_connection_that_is_too_old_is_not_used_though_nobody_came_to_close_it() -> None:
    async with FAST.over(saying(ANSWER, stay=True)) as rig:
        await read(await sent(rig))
        pool_of(rig)._idle[0].idle_until = 0.0
        await read(await sent(rig))
        assert rig.log.connections == 2


async def test_the_youngest_connection_is_used_first() -> None:
    async def handle(conn: Connection) -> None:
        number = conn.log.connections
        while True:
            await conn.request()
            if conn.log.open < 3:
                await together.wait()
            together.set()
            await conn.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n%d" % number)

    together = asyncio.Event()
    async with FAST.over(handle) as rig:
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(sent(rig))
        youngest = pool_of(rig)._idle[-1]
        bodies = {await read(await sent(rig)) for _ in range(5)}
        assert (len(bodies), pool_of(rig)._idle[-1] is youngest) == (1, True)
