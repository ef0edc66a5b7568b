"""Who hears what arrives: a bug in an ear ends its connection and its request, and is nobody else's fault."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from tests.upstream.loopback import FAST, PATIENCE_S, Connection
from tests.upstream.pooled.rigs import CHUNKED, sent
from troyproxy.ports import EarFailed


class _Wrong(Exception):
    """Nobody expects it."""


def _wrong(_: bytes) -> bool:
    raise _Wrong


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("event", [b"5\r\nhello\r\n", b"05\r\nhello\r\n"])
def test_a_bug_in_an_ear_is_its_readers_and_ends_the_connection(
    loop: Callable[[], asyncio.AbstractEventLoop], event: bytes
) -> None:
    async def run() -> list[object]:
        told: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
        listening = asyncio.Event()

        async def handle(conn: Connection) -> None:
            await conn.request()
            await conn.write(CHUNKED + b"1\r\nx\r\n")
            await listening.wait()
            await conn.write(event)
            await conn.left()

        async with FAST.over(handle) as rig:
            response = await sent(rig)
            chunks = response.chunks()
            assert await anext(chunks) == b"x"
            response.listen(_wrong)
            listening.set()
            with pytest.raises(EarFailed):
                await anext(chunks)
            await response.aclose()
            await asyncio.wait_for(rig.log.gone.wait(), PATIENCE_S)
        return told

    with asyncio.Runner(loop_factory=loop) as runner:
        assert [type(error) for error in runner.run(run())] == [_Wrong]
