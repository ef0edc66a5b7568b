"""The gateway as an ASGI app, and its two wrappings: standing alone, and around somebody else's app."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Final, Self

from troyproxy.api.routing_table import RoutingTable
from troyproxy.errors import ConfigError
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(self.life, receive, send)
        elif scope["type"] == "http":
            await self.ready()
            await self.table(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000, "reason": ""})

    async def ready(self) -> None:
        """Start now if nobody started us before: a mounted app hears nothing of its host's lifespan."""
        if not self.life.started:
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
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                await life.start()
            except ConfigError as exc:
                await send({"type": "lifespan.startup.failed", "message": str(exc)})
                return
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await life.stop()
            await send({"type": "lifespan.shutdown.complete"})
            return


class Embedded:
    """A gateway around a host app: it owns its routes by method and path; everything else is the host's, untouched."""

    def __init__(self, app: ASGIApp, gateway: Gateway, *, prefix: str = "", admin_prefix: str | None = "/troy") -> None:
        self.app, self.gateway = app, gateway
        self._prefix, self._admin_prefix = prefix.rstrip("/"), admin_prefix

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
        if path.startswith(f"{self._prefix}/v1/"):
            cut = self._prefix
        elif self._admin_prefix and path.startswith(f"{self._admin_prefix.rstrip('/')}/"):
            cut = self._admin_prefix.rstrip("/")
        else:
            return None
        inner = path[len(cut) :]
        if (cut == self._prefix) is not inner.startswith("/v1/"):
            return None
        app, _, methods = self.gateway.table.find(scope["method"], inner)
        if app is None and not (methods and cut != self._prefix):
            return None
        root = str(scope.get("root_path", "")) + cut
        return {**scope, "root_path": root, "path": root + inner}

    async def _around(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run our start and stop around the host's."""
        life = self.gateway.life

        async def receive_started() -> Message:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await life.start()
            return message

        async def send_stopped(message: Message) -> None:
            if message["type"] != "lifespan.startup.complete":
                await life.stop()
            await send(message)

        try:
            await self.app(scope, receive_started, send_stopped)
        except ConfigError as exc:
            await send({"type": "lifespan.startup.failed", "message": str(exc)})
