"""A scripted upstream, as a raw server on loopback and as an ASGI app, so that both adapters meet the same."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.asgi import App, Receive, Scope, Send
from troyproxy.catalog.providers import Provider
from troyproxy.ports import Headers, Upstream, UpstreamRequest, UpstreamResponse
from troyproxy.upstream.asgi import AsgiUpstream
from troyproxy.upstream.http import HttpxUpstream
from troyproxy.upstream.pooled.adapter import PooledUpstream

PATIENCE_S = 10.0
"""Bounds a test that would hang; never waited for when things work."""
Step = bytes | asyncio.Event | None
"""A chunk to send, an event to wait for, or None: wait until the peer has left."""


@dataclass(slots=True)
class Answer:
    """What the upstream does."""

    status: int = 200
    headers: Headers = ((b"content-type", b"text/plain"),)
    steps: tuple[Step, ...] = ()
    silent: bool = False
    """No head, ever: wait for the peer to leave."""
    cut: bool = False
    """Lose the connection where the end would be."""
    headless: bool = False
    """Lose it instead of answering."""


@dataclass(slots=True)
class Seen:
    """One request as the upstream saw it."""

    method: str
    target: str
    headers: Headers
    body: bytes


@dataclass(slots=True)
class Log:
    """What an upstream saw."""

    requests: list[Seen] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """The peer left."""
    connections: int = 0
    open: int = 0
    most_open: int = 0


class Connection:
    """One accepted connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: Log) -> None:
        self.reader, self.writer, self.log = reader, writer, log

    async def request(self) -> Seen:
        """Read one request. Raises IncompleteReadError when the peer is done."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].split(b"\r\n")
        headers = tuple((n.strip().lower(), v.strip()) for n, _, v in (line.partition(b":") for line in lines))
        length = int(dict(headers).get(b"content-length", b"0"))
        body = await self.reader.readexactly(length)
        method, target, _ = first.decode().split(" ", 2)
        seen = Seen(method, target, headers, body)
        self.log.requests.append(seen)
        self.log.arrived.set()
        return seen

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def left(self) -> None:
        """Wait until the peer is gone."""
        try:
            while await self.reader.read(1 << 16):
                pass
        except ConnectionError:
            pass
        self.log.gone.set()


Handler = Callable[[Connection], Awaitable[None]]


@asynccontextmanager
async def server(handler: Handler, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, Log]]:
    """Serve *handler* on a free loopback port; everything is closed at the end."""
    log, tasks = Log(), set[asyncio.Task[Any]]()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        log.connections += 1
        log.open += 1
        log.most_open = max(log.most_open, log.open)
        try:
            await handler(Connection(reader, writer, log))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            log.open -= 1
            writer.transport.abort()
            tasks.discard(task)

    listener = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    try:
        yield listener.sockets[0].getsockname()[1], log
    finally:
        listener.close()
        for task in tuple(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE_S)


def handler_of(answer: Answer) -> Handler:
    """Return a handler that gives *answer* to every request of a connection, chunked unless a length is stated."""
    chunked = b"content-length" not in dict(answer.headers)

    async def handle(conn: Connection) -> None:
        while True:
            await conn.request()
            if answer.silent:
                await conn.left()
            if answer.silent or answer.headless:
                return
            await conn.write(_head(answer, chunked=chunked))
            for step in answer.steps:
                await _take(conn, step, chunked=chunked)
            if answer.cut:
                return
            await conn.write(b"0\r\n\r\n" if chunked else b"")

    return handle


def _head(answer: Answer, *, chunked: bool) -> bytes:
    lines = [b"HTTP/1.1 %d X" % answer.status, *(n + b": " + v for n, v in answer.headers)]
    return b"\r\n".join([*lines, *([b"transfer-encoding: chunked"] if chunked else []), b"", b""])


async def _take(conn: Connection, step: Step, *, chunked: bool) -> None:
    if isinstance(step, asyncio.Event):
        await step.wait()
    elif step is None:
        await conn.left()
    else:
        await conn.write(b"%x\r\n%b\r\n" % (len(step), step) if chunked else step)


class Lost(Exception):
    """How an app in this process loses its connection."""


def app_of(answer: Answer, log: Log) -> App:
    """Return an ASGI app that gives *answer*."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body = (await receive())["body"]
        target = scope["raw_path"].decode() + ("?" + scope["query_string"].decode() if scope["query_string"] else "")
        log.requests.append(Seen(scope["method"], target, tuple(scope["headers"]), body))
        log.arrived.set()
        if answer.silent:
            await _disconnected(receive, log)
        if answer.silent or answer.headless:
            raise Lost
        await send({"type": "http.response.start", "status": answer.status, "headers": list(answer.headers)})
        for step in answer.steps:
            await _play(step, receive, send, log)
        if answer.cut:
            raise Lost
        await send({"type": "http.response.body"})

    return app


async def _disconnected(receive: Receive, log: Log) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    log.gone.set()


async def _play(step: Step, receive: Receive, send: Send, log: Log) -> None:
    if isinstance(step, asyncio.Event):
        await step.wait()
    elif step is None:
        await _disconnected(receive, log)
    else:
        await send({"type": "http.response.body", "body": step, "more_body": True})


@dataclass(slots=True)
class Rig:
    """An adapter, the provider it talks to, and what that provider saw."""

    upstream: Upstream
    provider: Provider
    log: Log

    def request(
        self, path: str = "/chat/completions", *, body: bytes = b"{}", headers: Headers = ()
    ) -> UpstreamRequest:
        return UpstreamRequest(self.provider, "POST", path, headers, body)


@dataclass(frozen=True, slots=True)
class Network:
    """One of the network adapters."""

    make: Callable[..., Upstream]

    @asynccontextmanager
    async def over(self, answer: Answer | Handler, **options: Any) -> AsyncIterator[Rig]:  # noqa: ANN401 - constructor's
        """An adapter and a raw server that gives *answer*."""
        handler = handler_of(answer) if isinstance(answer, Answer) else answer
        async with server(handler) as (port, log):
            upstream = self.make(**options)
            try:
                yield Rig(upstream, Provider(id="alpha", base_url=f"http://127.0.0.1:{port}/v1"), log)
            finally:
                await upstream.aclose()


HTTPX = Network(partial(HttpxUpstream, env={}))
FAST = Network(PooledUpstream)
over_http = HTTPX.over


@asynccontextmanager
async def in_process(answer: Answer) -> AsyncIterator[Rig]:
    """An `AsgiUpstream` and an app that gives *answer*."""
    log = Log()
    upstream = AsgiUpstream(app_of(answer, log))
    try:
        yield Rig(upstream, Provider(id="alpha", base_url="http://alpha/v1", app="x:y"), log)
    finally:
        await upstream.aclose()


async def read(response: UpstreamResponse) -> bytes:
    """Read the whole body and close."""
    body = b"".join([chunk async for chunk in response.chunks()])
    await response.aclose()
    return body
