"""What the requests of one connection share, and what is known of header names for all connections of a server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HEADER_RE
from uvicorn.server import ServerState

from troyproxy.cli.farewell import leave
from troyproxy.upstream.outbox import Outbox

MANY: Final = 1000
"""Names of headers that are kept, at most."""
LONG: Final = 64
"""Bytes of the longest one."""


class Lowered(dict[bytes, bytes]):
    """Header name → the same in lower case."""

    def __missing__(self, name: bytes) -> bytes:
        return _kept(self, name, name.lower())


class Names(dict[bytes, bytes]):
    """Header name → how its line begins, for names that were found to be valid. Raises RuntimeError for another."""

    def __missing__(self, name: bytes) -> bytes:
        if HEADER_RE.search(name):
            raise RuntimeError("Invalid HTTP header name.")
        return _kept(self, name, name.lower() + b": ")


def _kept(known: dict[bytes, bytes], name: bytes, what: bytes) -> bytes:
    if len(name) <= LONG:
        if len(known) >= MANY:
            known.clear()
        known[name] = what
    return what


@dataclass(slots=True)
class Line:
    """What the requests of one connection share."""

    transport: asyncio.Transport
    flow: FlowControl
    loop: asyncio.AbstractEventLoop
    logger: logging.Logger
    state: ServerState
    names: Names
    stopping: Callable[[], bool]
    """Whether the server is about to stop."""
    outbox: Outbox
    complete: Callable[[], None]
    """To be called when an answer is complete."""
    _told: list[tuple[bytes, bytes]] | None = None
    _lines: bytes = b""

    def write(self, data: bytes) -> None:
        """Write *data*, if there is still somebody to read it. Usually `outbox` calls this."""
        if not self.transport.is_closing():
            self.transport.write(data)

    def leave(self) -> None:
        """End the connection, behind what was written."""
        self.outbox.flush()
        leave(self.transport, self.loop)

    def own_lines(self) -> bytes:
        """Return the lines of the server's own headers, of which the date is new every second."""
        told = self.state.default_headers
        if told is not self._told:
            self._told, self._lines = told, b"".join(b"%b: %b\r\n" % pair for pair in told)
        return self._lines
