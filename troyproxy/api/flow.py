"""An answer that goes on until it is over or its reader has left: server-sent events of the admin API.

The server drops what is sent to a client that has left without a word, so somebody must listen for the leaving.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass
from typing import Final

from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import Scope

EVENTS: Final = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Flow:
    """What is sent, part by part. An empty part means "nothing yet"; one must come every second or so."""

    parts: AsyncGenerator[bytes, None]
    held: AbstractContextManager[object]
    """Left when the answer is over, also when not one part was asked for."""
    content_type: str = EVENTS


async def send_flow(scope: Scope, receive: Receive, send: Send, flow: Flow) -> None:
    """Send *flow*, of which a HEAD gets the head. Whatever happens, it is closed."""
    headers = [
        (b"content-type", flow.content_type.encode("ascii")),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ]
    with flow.held:
        async with aclosing(flow.parts) as parts:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            if scope["method"] != "HEAD":
                await _pump(parts, receive, send)
            await send({"type": "http.response.body", "body": b""})


async def _pump(parts: AsyncGenerator[bytes, None], receive: Receive, send: Send) -> None:
    async with asyncio.TaskGroup() as tasks:
        leaving = tasks.create_task(_left(receive))
        async for part in parts:
            if leaving.done():
                break
            if part:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        leaving.cancel()


async def _left(receive: Receive) -> None:
    """Return when the client has left; whatever else it sends says nothing."""
    while (await receive())["type"] != "http.disconnect":
        pass
