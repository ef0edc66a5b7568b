"""What tests of one exchange share: a server that says what it is told, and the pool behind an adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec import structs

from tests.upstream.loopback import PATIENCE_S, Connection, Rig, read
from troyproxy.ports import UpstreamFailed
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.pooled.adapter import PooledUpstream
from troyproxy.upstream.pooled.pool import Pool
from troyproxy.upstream.pooled.response import PooledResponse

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def saying(*parts: bytes, stay: bool = False) -> Callable[[Connection], Awaitable[None]]:
    """Answer each request with *parts*, then close, or *stay* and serve on."""

    async def handle(conn: Connection) -> None:
        while True:
            await conn.request()
            for part in parts:
                await conn.write(part)
                await asyncio.sleep(0)
            if not stay:
                return

    return handle


def pool_of(rig: Rig) -> Pool:
    assert isinstance(rig.upstream, PooledUpstream)
    return rig.upstream._routes["alpha"].pool


async def sent(rig: Rig, body: bytes = b"{}", method: str = "POST") -> PooledResponse:
    response = await rig.upstream.send(structs.replace(rig.request(body=body), method=method))
    assert isinstance(response, PooledResponse)
    return response


async def failure(rig: Rig) -> tuple[Fault, bool]:
    """How sending or reading fails."""
    with pytest.raises(UpstreamFailed) as caught:
        await read(await rig.upstream.send(rig.request()))
    return caught.value.fault, caught.value.body_sent


async def eventually(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110 -- the loop's own callbacks make it true
            await asyncio.sleep(0)
