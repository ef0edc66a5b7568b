"""The client at the other end: bounded reading, writing, and waits that end when it leaves."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Receive, Send

MAX_BODY: Final = 64 << 20
"""Bytes of a request body."""


class Gone(Exception):
    """The client has left."""


class TooLarge(Exception):
    """The request body is over the bound."""


class Peer:
    """One request's receive and send."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send

    async def body(self) -> bytes:
        """Return the request's body. Raises Gone, TooLarge."""
        body = bytearray()
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Gone
            body += message.get("body", b"")
            if len(body) > MAX_BODY:
                raise TooLarge
            if not message.get("more_body", False):
                return bytes(body)

    async def gone(self) -> None:
        """Wait until the client leaves, then raise Gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        raise Gone

    async def pause(self, seconds: float) -> None:
        """Wait. Raises Gone as soon as the client leaves."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(seconds):
                await self.gone()
        except TimeoutError:
            return

    async def start(self, status: int, headers: dict[str, str]) -> None:
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def write(self, chunk: bytes) -> None:
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def respond(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        """Send a whole response."""
        await self.start(status, {**headers, "content-length": str(len(body))})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})
