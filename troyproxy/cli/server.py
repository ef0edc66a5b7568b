"""The uvicorn server of `serve`: our log, our signals, ``/metrics`` on a port of its own.

At SIGTERM or SIGINT ``/readyz`` turns to 503 at once; within a tenth of a second the listener closes and idle
connections with it; requests in flight go on for ``TROY_SHUTDOWN_S``, then they are cancelled. A second SIGINT ends
them now.
"""

from __future__ import annotations

import asyncio
import contextlib
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
from troyproxy.settings.values import Settings

KEEP_ALIVE_S: Final = 75
METRICS: Final = "/metrics"


def server_config(app: ASGIApp, settings: Settings, *, lifespan: bool = True) -> uvicorn.Config:
    """Return how uvicorn serves *app*."""
    return uvicorn.Config(
        Prefixed(app, settings.root_path) if settings.root_path else app,
        log_config=None,
        access_log=False,
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
        self, config: uvicorn.Config, on_start: Callable[[], Awaitable[None]], on_stop: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._on_start, self._on_stop = on_start, on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen."""
        await super().startup(sockets)
        await self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal."""
        del frame
        self._on_stop()
        self.force_exit = self.force_exit or (self.should_exit and sig == signal.SIGINT)
        self.should_exit = True


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
