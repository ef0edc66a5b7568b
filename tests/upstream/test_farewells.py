"""A 408 with which a server leaves an idle connection is no answer to the request that crosses it."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from tests.upstream.kept import ANSWER, Script, kept_then, serve, warmed
from tests.upstream.loopback import PATIENCE_S, Connection, Network, read

pytestmark = pytest.mark.anyio
FAREWELLS = {
    "length": b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\nConnection: close\r\n\r\nidle",
    "node": b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n",
    "haproxy": b"HTTP/1.0 408 Request Time-out\r\nCache-Control: no\r\nConnection: close\r\n\r\n<p>idle",
    "list": b"HTTP/1.1 408 X\r\nTransfer-Encoding: chunked\r\nConnection: x-odd, Close\r\n\r\n0\r\n\r\n",
    "cut": b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 400\r\nConnection: close\r\n\r\nidle",
}
"""What servers say before they close a connection on which nothing has come for a while."""
STAYING = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nslow"


def saying(answer: bytes) -> Script:
    """Answer with these bytes, and close."""

    async def say(conn: Connection) -> None:
        await conn.request()
        await conn.write(answer)

    return say


@pytest.mark.parametrize("farewell", FAREWELLS.values(), ids=FAREWELLS)
async def test_a_farewell_on_a_kept_connection_is_no_answer(net: Network, farewell: bytes) -> None:
    async with net.over(kept_then(saying(farewell), serve), max_connections=1) as rig:
        response = await (await warmed(rig)).upstream.send(rig.request(body=b"again"))
        assert (response.status, await read(response)) == (200, b"ok")
        assert [seen.body for seen in rig.log.requests] == [b"{}", b"again", b"again"]


async def test_a_farewell_while_nobody_asks_ends_the_connection(net: Network) -> None:
    async def part(conn: Connection) -> None:
        if conn.log.connections > 1:
            await serve(conn)
        await conn.request()
        await conn.write(ANSWER)
        await conn.write(FAREWELLS["length"])
        await conn.left()

    async with net.over(part) as rig:
        await warmed(rig)
        async with asyncio.timeout(PATIENCE_S):
            while not rig.log.gone.is_set():
                assert await read(await rig.upstream.send(rig.request())) == b"ok"


@pytest.mark.parametrize("body", [b"{}", bytes(1 << 20)], ids=["small", "large"])
async def test_a_second_farewell_is_the_answer(net: Network, body: bytes) -> None:
    async def part(conn: Connection) -> None:
        await conn.reader.readuntil(b"\r\n\r\n")
        await conn.write(FAREWELLS["length"])
        await conn.left()

    async with net.over(kept_then(part, part)) as rig:
        response = await (await warmed(rig)).upstream.send(rig.request(body=body))
        assert (response.status, await read(response), rig.log.connections) == (408, b"idle", 2)


async def test_a_timeout_on_a_new_connection_is_the_answer(net: Network) -> None:
    async with net.over(saying(FAREWELLS["length"])) as rig:
        response = await rig.upstream.send(rig.request())
        assert (response.status, await read(response), rig.log.connections) == (408, b"idle", 1)


@pytest.mark.parametrize("answer", [STAYING, FAREWELLS["length"].replace(b"408", b"429")], ids=["stays", "429"])
async def test_what_is_no_farewell_is_the_answer_on_a_kept_connection_too(net: Network, answer: bytes) -> None:
    async with net.over(kept_then(saying(answer), serve)) as rig:
        response = await (await warmed(rig)).upstream.send(rig.request())
        assert (response.status, len(rig.log.requests)) == (int(answer[9:12]), 2)
        await response.aclose()


async def test_a_farewell_when_the_time_to_connect_is_over_is_the_answer(net: Network) -> None:
    async with net.over(kept_then(saying(FAREWELLS["length"]), serve)) as rig:
        request = structs.replace((await warmed(rig)).request(), connect_s=1e-9)
        response = await rig.upstream.send(request)
        assert (response.status, await read(response), rig.log.connections) == (408, b"idle", 1)
