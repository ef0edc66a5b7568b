"""The uvicorn server of `serve`: our log, our signals, ``/metrics`` on a port of its own.

At SIGTERM or SIGINT ``/readyz`` turns to 503 and every answer says ``Connection: close``, so that whatever balances the
load moves on. After SIGTERM new connections are taken for another ``TROY_DRAIN_S``; then the listener closes, and idle
connections with it. Requests in flight go on for ``TROY_SHUTDOWN_S``, then they are cancelled. A second SIGINT ends
them now.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from types import FrameType
from typing import Final

import uvicorn

from troyproxy.api.gateway import ASGIApp, Gateway
from troyproxy.api.routing_table import Route, RoutingTable
from troyproxy.cli.prefix import Prefixed
from troyproxy.cli.protocol import Connection
from troyproxy.cli.server_config import ServerConfig
from troyproxy.settings.values import Settings

KEEP_ALIVE_S: Final = 75
METRICS: Final = "/metrics"
TICK_S: Final = 0.05
DATE_S: Final = 1.0
"""How long a date is told."""
YOUNG: Final = 10_000
"""New objects after which the collector looks at them. Requests leave it nothing: at 700, as it comes, it took 3 %."""
OLD: Final = 2
"""Looks at the young, and then at the older ones, before everything is looked through: as often as it comes (84,000
objects), or what outlived a look and was garbage later would heap up. It is little, since what is loaded is frozen."""


def server_config(app: ASGIApp, settings: Settings, *, lifespan: bool = True) -> ServerConfig:
    """Return how uvicorn serves *app*."""
    return ServerConfig(
        Prefixed(app, settings.root_path) if settings.root_path else app,
        log_config=None,
        access_log=False,
        interface="asgi3",
        http=Connection,
        ws="none",
        lifespan="on" if lifespan else "off",
        proxy_headers=True,
        forwarded_allow_ips=list(settings.trusted_proxies),
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=math.ceil(settings.shutdown_s),
    )


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the event loop: uvloop where it is installed."""
    return uvicorn.Config("", loop="auto", log_config=None).get_loop_factory()


class Server(uvicorn.Server):
    """Says when it listens, and that it stops when the signal arrives, not when the streams are done.

    A signal is not raised again at the end: an orderly stop is no failure.
    """

    def __init__(
        self,
        config: ServerConfig,
        on_start: Callable[[], Awaitable[None]],
        on_stop: Callable[[], None],
        *,
        drain_s: float = 0.0,
    ) -> None:
        super().__init__(config)
        self._served, self._on_start, self._on_stop, self._drain_s = config, on_start, on_stop, drain_s
        self._wake: Callable[[], object] = bool
        """Wakes `main_loop`, once there is something to wake."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen."""
        await super().startup(sockets)
        await self._on_start()
        gc.freeze()  # what is here by now stays: to look through it again and again would stop every stream
        gc.set_threshold(YOUNG, OLD, OLD)

    async def main_loop(self) -> None:
        """Keep the date of the answers until a signal comes. uvicorn would look for one ten times a second."""
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(woken.set)
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DATE_S):
                    await woken.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal."""
        del frame
        self._on_stop()
        self.force_exit = self.force_exit or (self.should_exit and sig == signal.SIGINT)
        self.should_exit = True
        self._wake()
        if sig == signal.SIGINT:
            self._drain_s = 0.0

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take new connections a little longer, and whoever has connected by the end of that; then stop."""
        now = asyncio.get_running_loop().time
        since = now()
        while now() - since < self._drain_s:  # noqa: ASYNC110 -- a handler of signals wakes nobody
            await asyncio.sleep(TICK_S)
        waiting = self._close(sockets or [])
        for connection in waiting:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        await super().shutdown(sockets)

    def _close(self, listeners: list[socket.socket]) -> list[socket.socket]:
        """Close *listeners*, and return the connections that nobody has taken; the system would reset them."""
        waiting = [connection for listener in listeners for connection in _not_taken(listener)]
        for server in self.servers:
            server.close()
        for listener in listeners:
            listener.close()
        return waiting

    def _protocol(self) -> Connection:
        return Connection(config=self._served, server_state=self.server_state, app_state=self.lifespan.state)


def _not_taken(listener: socket.socket) -> Iterator[socket.socket]:
    with contextlib.suppress(OSError):  # nobody waits
        while True:
            connection, _ = listener.accept()
            connection.setblocking(False)
            yield connection


class SideServer(uvicorn.Server):
    """A second server in the same loop: the signals are the first one's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


def metrics_app(gateway: Gateway) -> ASGIApp:
    """Return an app with the gateway's ``/metrics`` and nothing else."""
    page, _, _ = gateway.table.find("GET", METRICS)
    return RoutingTable([Route("GET", METRICS, page)] if page is not None else [])
