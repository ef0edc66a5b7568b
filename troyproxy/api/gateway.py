"""The gateway as an ASGI app, and its two wrappings: standing alone, and around somebody else's app."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Final, Self

from troyproxy.api.routing_table import RoutingTable
from troyproxy.errors import TroyError
from troyproxy.proxy.answers import Message, Receive, Send
from troyproxy.proxy.call import Scope, local_path
from troyproxy.proxy.life import Life
from troyproxy.proxy.snapshots import SnapshotKeeper

ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

LOGGER: Final = logging.getLogger("troyproxy")


class Gateway:
    """Serves *table*. Start it by its lifespan or ``async with``; else the first request does, with a warning."""

    def __init__(self, table: RoutingTable, life: Life, snapshots: SnapshotKeeper) -> None:
        self.table, self.life, self.snapshots = table, life, snapshots
        self._warned = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(self.life, receive, send)
        elif scope["type"] == "http":
            if not self.life.started:
                await self.ready()
            await self.table.serve(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000, "reason": ""})

    async def ready(self) -> None:
        """Start now if nobody started us before: a mounted app hears nothing of its host's lifespan."""
        if self.life.started:
            return
        if not self._warned:
            self._warned = True
            LOGGER.warning(
                "the gateway starts with its first request; wire its lifespan (Starlette(lifespan=gateway.lifespan), "
                "or 'async with gateway') so that it also stops cleanly"
            )
        await self.life.start()

    @asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:
        """For ``Starlette(lifespan=gateway.lifespan)``."""
        del app
        async with self:
            yield

    async def __aenter__(self) -> Self:
        await self.life.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.life.stop()


async def _lifespan(life: Life, receive: Receive, send: Send) -> None:
    if not await _started(life, receive, send):
        return
    await receive()
    await life.stop()
    await send({"type": "lifespan.shutdown.complete"})


async def _started(life: Life, receive: Receive, send: Send, *, tell: bool = True) -> bool:
    """Wait for the server's startup and start; False when that failed, of which the server then knows."""
    await receive()
    try:
        await life.start()
    except TroyError as exc:
        await send({"type": "lifespan.startup.failed", "message": str(exc)})
        return False
    if tell:
        await send({"type": "lifespan.startup.complete"})
    return True


class Embedded:
    """A gateway around a host app: it owns its routes by method and path; everything else is the host's, untouched."""

    def __init__(self, app: ASGIApp, gateway: Gateway, *, prefix: str = "", admin_prefix: str | None = "/troy") -> None:
        self.app, self.gateway = app, gateway
        self._prefix = prefix.rstrip("/")
        self._admin_prefix = None if admin_prefix is None else admin_prefix.rstrip("/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._around(scope, receive, send)
        elif scope["type"] == "http" and (ours := self._ours(scope)) is not None:
            await self.gateway.ready()
            await self.gateway.table(ours, receive, send)
        else:
            await self.app(scope, receive, send)

    def _ours(self, scope: Scope) -> Scope | None:
        """Return the scope as the gateway's table reads it, or None when the host owns the request."""
        path = local_path(scope)
        for prefix, client in ((self._prefix, True), (self._admin_prefix, False)):
            if prefix is None or not path.startswith(f"{prefix}/"):
                continue
            inner = path[len(prefix) :]
            if inner.startswith("/v1/") is client and self._serves(scope["method"], inner, exactly=client):
                root = str(scope.get("root_path", "")) + prefix
                return {**scope, "root_path": root, "path": root + inner}
        return None

    def _serves(self, method: str, path: str, *, exactly: bool) -> bool:
        """Whether the path is ours: *exactly*, with this method; else with any, and a wrong one gets our 405."""
        app, _, methods = self.gateway.table.find(method, path)
        return app is not None or (bool(methods) and not exactly)

    async def _around(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run our start and stop around the host's. A host that knows no lifespan needs none for us to have ours."""
        life = self.gateway.life
        if not await _started(life, receive, send, tell=False):
            return
        host = _HostLifespan(life, receive, send)
        # A child, so that whatever a host without lifespan raises is a value: what it may be, nobody can list.
        [error] = await asyncio.gather(self.app(scope, host.receive, host.send), return_exceptions=True)
        if host.ended or (host.started and error is not None):
            await life.stop()
            if error is not None:
                raise error
            return
        if error is not None:
            LOGGER.warning("the host does not take part in the lifespan (%s); it is served without", _kind(error))
        if not host.started:
            await send({"type": "lifespan.startup.complete"})
        await host.stopping()
        await life.stop()
        await send({"type": "lifespan.shutdown.complete"})


def _kind(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


class _HostLifespan:
    """What a host sees of the server's lifespan. The startup message was read by us, and is given to it again."""

    def __init__(self, life: Life, receive: Receive, send: Send) -> None:
        self._life, self._receive, self._send = life, receive, send
        self._replayed = self._stopping = False
        self.started = self.ended = False

    async def receive(self) -> Message:
        if not self._replayed:
            self._replayed = True
            return {"type": "lifespan.startup"}
        message = await self._receive()
        self._stopping = True
        return message

    async def send(self, message: Message) -> None:
        self.started = True
        if message["type"] != "lifespan.startup.complete":
            self.ended = True
            await self._life.stop()
        await self._send(message)

    async def stopping(self) -> None:
        """Wait for the server's shutdown, if the host has not seen it already."""
        if not self._stopping:
            await self._receive()
