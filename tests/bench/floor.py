"""The floor: a bare ASGI app with a bare pooled HTTP/1.1 client on httptools. What is faster is not ASGI in Python.

It has no deadlines, no limits, no TLS and no back pressure, so it is a measure and no example.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, cast
from urllib.parse import urlsplit

import httptools

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
_HEAD: Final = b"POST /v1/chat/completions HTTP/1.1\r\nhost: upstream\r\ncontent-type: application/json\r\n"


class Upstream(asyncio.Protocol):
    """One connection to the upstream, with one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._parser: httptools.HttpResponseParser
        self._parts: deque[bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self.kind, self.status, self.complete, self.closed = b"", 0, False, False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- as the protocol has it
        self.closed = True
        self._wake()

    def ask(self, body: bytes) -> None:
        """Send a request."""
        self.complete = False
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(b"%scontent-length: %d\r\n\r\n%s" % (_HEAD, len(body), body))

    async def read(self) -> bytes:
        """Return what has come by now, at least something; nothing at the end."""
        while not (self._parts or self.complete or self.closed):
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        body = b"".join(self._parts)
        self._parts.clear()
        return body

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"content-type":
            self.kind = value

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        self.complete = True


async def _read(receive: Receive) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        body += message.get("body", b"")
    return body


async def _relay(upstream: Upstream, send: Send) -> None:
    part = await upstream.read()
    headers = [(b"content-type", upstream.kind)]
    await send({"type": "http.response.start", "status": upstream.status, "headers": headers})
    while not upstream.complete and not upstream.closed:
        await send({"type": "http.response.body", "body": part, "more_body": True})
        part = await upstream.read()
    await send({"type": "http.response.body", "body": part, "more_body": False})


def create_app() -> ASGIApp:
    """Return the app, for the upstream in BENCH_UPSTREAM."""
    where = urlsplit(os.environ["BENCH_UPSTREAM"])
    host, port = where.hostname or "", where.port or 80
    idle: list[Upstream] = []

    async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await _read(receive)
        if idle:
            upstream = idle.pop()
        else:
            loop = asyncio.get_running_loop()
            _, upstream = await loop.create_connection(Upstream, host, port)
        upstream.ask(body)
        await _relay(upstream, send)
        if not upstream.closed:
            idle.append(upstream)

    return app
