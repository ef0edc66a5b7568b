"""Connections that know which request they serve, so that a death in idleness can be told from a failed request.

A server may close a connection that it holds for idle while our next request is on its way (RFC 9112, section 9.5).
From here that is a connection which has served before and ends without a byte of an answer. Whether to send again is
decided in `http.py`; this module reports in `Progress` what it saw and, for the second try, passes over idle
connections.

Two names of the library that this stands on are private (``_factory``, ``_get``). Without the first nothing is reported
and nothing is sent twice; without the second the second try may meet another idle connection. Tests watch both.
"""

from __future__ import annotations

import asyncio
import ssl
from functools import partial

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest, ConnectionKey
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from troyproxy.upstream.failures import PROGRESS, Progress


class Line(ResponseHandler):
    """One connection; it writes into the progress of the request that it carries."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._progress: Progress | None = None

    def serve(self, progress: Progress) -> None:
        """Carry the next request from now on."""
        progress.reused = self._progress is not None
        self._progress = progress

    def data_received(self, data: bytes) -> None:
        """Take *data* of the peer; the first byte is the beginning of an answer, whatever it turns out to be."""
        if self._progress is not None:
            self._progress.answered = True
        super().data_received(data)


class Connector(aiohttp.TCPConnector):
    """A pool of at most *limit* busy connections, each kept *keepalive_s* seconds when idle."""

    def __init__(self, trust: ssl.SSLContext, *, limit: int, keepalive_s: float) -> None:
        super().__init__(ssl=trust, limit=limit, keepalive_timeout=keepalive_s)
        self._factory = partial(Line, loop=self._loop)  # type: ignore[assignment]  # a partial is invariant

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 -- the library's signature
    ) -> Connection:
        """Return an idle or a new connection, bound to the progress of the running request."""
        connection = await super().connect(req, traces, timeout)
        if isinstance(connection.protocol, Line):
            connection.protocol.serve(PROGRESS.get(Progress()))
        return connection

    async def _get(self, key: ConnectionKey, traces: list[Trace]) -> Connection | None:
        """Return an idle connection, or None: a second try wants a new one.

        What arrived while nothing was asked is no answer (RFC 9112, section 9.2): some servers say 408 before they
        close. Such a connection is closed, or its words would be taken for the answer to the next request.
        """
        if PROGRESS.get(Progress()).fresh:
            return None
        while (connection := await super()._get(key, traces)) is not None:
            if connection.protocol is not None and not connection.protocol.should_close:
                break
            connection.close()
        return connection
