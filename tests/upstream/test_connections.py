"""Pools and their connections: what idle connections say, how a second try connects, what abandoned answers leave."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from httpx_aiohttp import AiohttpTransport
from msgspec import structs

from tests.upstream.loopback import PATIENCE_S, Connection, Handler, Network, Rig, over_http, read, server
from troyproxy.catalog.providers import Provider
from troyproxy.ports import UpstreamFailed, UpstreamResponse
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.connections import Connector
from troyproxy.upstream.http import HttpxUpstream
from troyproxy.upstream.pooled.adapter import PooledUpstream

pytestmark = pytest.mark.anyio
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def connector_of(rig: Rig) -> Connector:
    """The connector of the only pool."""
    assert isinstance(rig.upstream, HttpxUpstream)
    (pool,) = rig.upstream._pools._current.values()
    assert isinstance(pool.transport, AiohttpTransport)
    assert isinstance(pool.transport.client, aiohttp.ClientSession)
    assert isinstance(pool.transport.client.connector, Connector)
    return pool.transport.client.connector


def busy(rig: Rig) -> int:
    """How many connections carry an exchange."""
    if isinstance(rig.upstream, PooledUpstream):
        (route,) = rig.upstream._routes.values()
        return route.pool.used - len(route.pool._idle)
    return len(connector_of(rig)._acquired)


async def test_what_a_server_says_unasked_is_no_answer() -> None:
    """Some say 408 before they close an idle connection; the next request must not get it."""

    async def handle(conn: Connection) -> None:
        await conn.request()
        await conn.write(ANSWER)
        await asyncio.wait_for(idle.wait(), PATIENCE_S)
        await conn.write(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
        await conn.left()

    idle = asyncio.Event()
    async with over_http(handle) as rig:
        await read(await rig.upstream.send(rig.request()))
        (((kept, _),),) = connector_of(rig)._conns.values()
        idle.set()
        async with asyncio.timeout(PATIENCE_S):
            while not kept.should_close:  # noqa: ASYNC110 -- the library has no event for it
                await asyncio.sleep(0)
        assert await read(await rig.upstream.send(rig.request())) == b"ok"


async def test_without_the_private_names_of_the_library_nothing_is_sent_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(self: Connector, *_: object, limit: int, keepalive_s: float) -> None:
        aiohttp.TCPConnector.__init__(self, limit=limit, keepalive_timeout=keepalive_s)

    async def handle(conn: Connection) -> None:
        await conn.request()
        await conn.write(ANSWER)
        await conn.request()

    monkeypatch.setattr(Connector, "__init__", plain)
    async with over_http(handle) as rig:
        await read(await rig.upstream.send(rig.request()))
        with pytest.raises(UpstreamFailed):
            await rig.upstream.send(rig.request())
        assert (len(rig.log.requests), rig.log.connections) == (2, 1)


@asynccontextmanager
async def over_tls(net: Network, certificate: tuple[Path, ssl.SSLContext], second: Handler) -> AsyncIterator[Rig]:
    """One slot, one request through over TLS: its connection ends on the next, which meets *second*, not TLS."""

    async def handle(conn: Connection) -> None:
        if conn.log.connections == 2:
            await second(conn)
            return
        await conn.writer.start_tls(certificate[1])
        await conn.request()
        await conn.write(ANSWER)
        await conn.request()

    async with server(handle) as (port, log):
        provider = Provider(id="p", base_url=f"https://127.0.0.1:{port}", ca_file=str(certificate[0]))
        upstream = net.make(max_connections=1)
        rig = Rig(upstream, provider, log)
        try:
            await read(await upstream.send(rig.request()))
            yield rig
        finally:
            await upstream.aclose()


async def test_the_time_to_connect_covers_the_second_try(
    net: Network, certificate: tuple[Path, ssl.SSLContext]
) -> None:
    async with over_tls(net, certificate, Connection.left) as rig:
        with pytest.raises(UpstreamFailed) as caught:
            await rig.upstream.send(structs.replace(rig.request(), connect_s=0.5))
        assert (caught.value.fault, caught.value.body_sent) == (Fault.TIMEOUT_CONNECT, True)


async def test_a_second_try_that_is_cancelled_while_it_connects_gives_its_slot_back(
    net: Network,
    certificate: tuple[Path, ssl.SSLContext],
) -> None:
    reached = asyncio.Event()

    async def hang(conn: Connection) -> None:
        reached.set()
        await conn.left()

    async with over_tls(net, certificate, hang) as rig:
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(rig.upstream.send(rig.request()))
            await asyncio.wait_for(reached.wait(), PATIENCE_S)
            sending.cancel()
        assert await read(await rig.upstream.send(rig.request())) == b"ok"


GZIPPED = gzip.compress(bytes(range(256)) * 256)
DAMAGED = b"\x1f\x8b\x08\x00" + b"\xff" * 1000


async def leave(response: UpstreamResponse) -> None:
    """Abandon it unread."""
    await response.aclose()


async def leave_after_a_chunk(response: UpstreamResponse) -> None:
    with suppress(UpstreamFailed):  # when it is damaged
        await anext(response.chunks())
    await response.aclose()


async def leave_while_reading(response: UpstreamResponse) -> None:
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(drain(response))
        await asyncio.sleep(0)
        reading.cancel()
    await response.aclose()


async def drain(response: UpstreamResponse) -> None:
    with suppress(UpstreamFailed):
        async for _ in response.chunks():
            pass


@pytest.mark.parametrize("ways", [leave, leave_after_a_chunk, leave_while_reading])
@pytest.mark.parametrize("coding", [b"identity", b"gzip", b"damaged"])
async def test_200_abandoned_answers_hold_no_slot(
    net: Network, ways: Callable[[UpstreamResponse], Awaitable[None]], coding: bytes
) -> None:
    """Eight at a time wait for four slots; each body is begun and never ends."""
    body = {b"identity": b"x" * 1000, b"gzip": GZIPPED[:-100], b"damaged": DAMAGED}[coding]
    named = b"identity" if coding == b"identity" else b"gzip"

    async def handle(conn: Connection) -> None:
        while not (await conn.request()).target.endswith("/busy"):
            await conn.write(ANSWER)
        await conn.write(
            b"HTTP/1.1 503 X\r\ncontent-encoding: " + named + b"\r\ncontent-length: 1048576\r\n\r\n" + body
        )
        await conn.left()

    async def abandon(rig: Rig) -> None:
        for _ in range(25):
            await ways(await rig.upstream.send(rig.request("/busy")))

    async with net.over(handle, max_connections=4) as rig:
        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(abandon(rig))
        held, asked = busy(rig), len(rig.log.requests)
        assert (held, asked, await read(await rig.upstream.send(rig.request()))) == (0, 200, b"ok")
