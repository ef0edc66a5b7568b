"""Keeps a quiet stream alive: comments while the upstream is silent, and, where asked for, an early head.

The early head (state OPEN) is for hops that need bytes soon: no content goes out with it, so the walk may still go
on, but a final failure can then only be told in-band.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from troyproxy.ports import Headers
from troyproxy.proxy.client import Client, ClientGone
from troyproxy.wire.sse import Frame, encode_comment

LOGGER: Final = logging.getLogger("troyproxy")

_KEEPALIVE: Final = Frame(raw=encode_comment("keep-alive"), data=None)


@asynccontextmanager
async def pulse(client: Client, headers: Headers, *, open_after_s: float, every_s: float) -> AsyncIterator[None]:
    """Beat beside the work inside; *open_after_s* and *every_s* of 0 are off."""
    if not open_after_s and not every_s:
        yield
        return
    beat = asyncio.get_running_loop().create_task(_beat(client, headers, open_after_s, every_s))
    try:
        yield
    finally:
        beat.cancel()
        await asyncio.wait({beat})
        if not beat.cancelled() and (error := beat.exception()) is not None:
            LOGGER.error("the keep-alive had failed", exc_info=error)


async def _beat(client: Client, headers: Headers, open_after_s: float, every_s: float) -> None:
    try:
        if open_after_s:
            await asyncio.sleep(open_after_s)
            if await client.open(200, headers):
                await client.frames([_KEEPALIVE], more=True)
        while every_s and not client.finished:
            await asyncio.sleep(_wait_s(client, every_s))
            if client.started and _wait_s(client, every_s) >= every_s:
                await client.frames([_KEEPALIVE], more=True)
    except ClientGone:
        return  # whoever sends next finds out, and ends the request


def _wait_s(client: Client, every_s: float) -> float:
    silent = asyncio.get_running_loop().time() - client.sent_at
    return every_s if silent >= every_s else every_s - silent
