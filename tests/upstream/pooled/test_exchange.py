"""One exchange over a raw socket: how answers come, and how they are cut."""

from __future__ import annotations

import asyncio
import gzip
import socket

import pytest

from tests.upstream.loopback import FAST, PATIENCE_S, Connection, read
from tests.upstream.pooled.rigs import ANSWER, CHUNKED, failure, pool_of, saying, sent
from troyproxy.ports import UpstreamFailed
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.pooled.parser import MAX_HEAD

pytestmark = pytest.mark.anyio
RESETS = b"\1\0\0\0\0\0\0\0"
"""SO_LINGER with no time: closing sends a reset."""


@pytest.mark.parametrize(
    "parts",
    [
        (ANSWER,),
        (ANSWER[:20], ANSWER[20:]),
        (ANSWER[:-2], b"o", b"k"),
        (CHUNKED + b"2\r\nok\r\n0\r\n\r\n",),
        (CHUNKED, b"1\r\no\r\n", b"1\r\nk\r\n", b"0\r\nt: x\r\n\r\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 E\r\n\r\n", ANSWER),
        (b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok",),
    ],
)
async def test_an_answer_is_read_and_its_connection_used_again(parts: tuple[bytes, ...]) -> None:
    async with FAST.over(saying(*parts, stay=True)) as rig:
        assert [await read(await sent(rig)) for _ in range(3)] == [b"ok"] * 3
        assert rig.log.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        ANSWER + b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged",
        ANSWER + b"x",
        CHUNKED + b"2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    ],
)
async def test_a_connection_that_is_not_to_be_used_again_is_closed(answer: bytes) -> None:
    async with FAST.over(saying(answer, stay=True)) as rig:
        assert [await read(await sent(rig)) for _ in range(2)] == [b"ok"] * 2
        assert rig.log.connections == 2


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_an_answer_without_a_body_frees_its_connection(method: str) -> None:
    status = b"204 No Content\r\n\r\n" if method == "GET" else b"200 OK\r\ncontent-length: 99\r\n\r\n"
    async with FAST.over(saying(b"HTTP/1.1 " + status, stay=True)) as rig:
        assert [await read(await sent(rig, b"", method)) for _ in range(2)] == [b""] * 2
        assert rig.log.connections == 1


async def test_a_body_may_end_with_its_connection() -> None:
    async with FAST.over(saying(b"HTTP/1.1 200 OK\r\n\r\n", b"o", b"k")) as rig:
        assert await read(await sent(rig)) == b"ok"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok",
        CHUNKED + b"2\r\nok\r\n",
        CHUNKED + b"2\r\nok\r\n0\r\n",
        CHUNKED + b"9\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-le",
    ],
)
async def test_a_cut_answer_is_a_reset_never_an_end(answer: bytes) -> None:
    async with FAST.over(saying(answer)) as rig:
        assert await failure(rig) == (Fault.RESET, True)


async def test_a_reset_cuts_a_body_that_ends_with_its_connection() -> None:
    async def handle(conn: Connection) -> None:
        await conn.request()
        await conn.write(b"HTTP/1.1 200 OK\r\n\r\nok")
        await conn.reader.readexactly(1)
        conn.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)

    async with FAST.over(handle) as rig:
        response = await sent(rig)
        chunks = response.chunks()
        first = await anext(chunks)
        assert response._line is not None
        response._line._transport.write(b"x")  # type: ignore[attr-defined]  # now it resets
        with pytest.raises(UpstreamFailed) as caught:
            await anext(chunks)
        assert (first, caught.value.fault) == (b"ok", Fault.RESET)


@pytest.mark.parametrize(
    "answer",
    [
        *(b"HTTP/1.1 101 Switching\r\n\r\n", b"\0\0\0", b"HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n"),
        *(ANSWER.replace(b"\r\n\r\n", b"\r\ntransfer-encoding: chunked\r\n\r\n"), CHUNKED + b"zz\r\n"),
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * MAX_HEAD,
    ],
)
async def test_what_is_no_strict_http_is_a_protocol_fault(answer: bytes) -> None:
    async def handle(conn: Connection) -> None:
        await conn.request()
        await conn.write(answer)
        await conn.left()

    async with FAST.over(handle) as rig:
        assert await failure(rig) == (Fault.PROTOCOL, True)
        assert await asyncio.wait_for(rig.log.gone.wait(), PATIENCE_S)
        assert pool_of(rig).used == 0


async def test_what_came_before_a_fault_is_read_first() -> None:
    async with FAST.over(saying(CHUNKED + b"2\r\nok\r\nzz\r\n")) as rig:
        chunks = (await sent(rig)).chunks()
        first = await anext(chunks)
        with pytest.raises(UpstreamFailed) as caught:
            await anext(chunks)
        assert (first, caught.value.fault) == (b"ok", Fault.PROTOCOL)


async def test_a_small_answer_is_there_whole_with_its_head() -> None:
    async with FAST.over(saying(ANSWER, stay=True)) as rig:
        response = await sent(rig)
        assert (response.whole, response.whole, pool_of(rig)._idle != [], await read(response)) == (
            b"ok",
            b"ok",
            True,
            b"ok",
        )


async def test_a_coded_answer_is_not_whole_before_it_is_decoded() -> None:
    coded = gzip.compress(b"ok")
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(coded)
    async with FAST.over(saying(head + coded, stay=True)) as rig:
        response = await sent(rig)
        assert (response.whole, await read(response)) == (None, b"ok")


async def test_a_closed_answer_is_read_no_more() -> None:
    async with FAST.over(saying(ANSWER, stay=True)) as rig:
        response = await sent(rig)
        await response.aclose()
        await response.aclose()
        with pytest.raises(UpstreamFailed):
            await anext(response.chunks())
        assert response.whole is None
