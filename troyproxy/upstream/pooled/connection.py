"""One connection to an origin: it carries one exchange at a time, and none while it is idle.

What arrives while nothing was asked is no answer (RFC 9112, section 9.2): the connection is dropped. A large body is
written as fast as the peer takes it, out of the loop's own callbacks; an answer may come meanwhile, and one that
refuses stops the writing. Whatever happens, the pool hears once that the connection's slot is free.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import Final, Protocol

from troyproxy.resilience.faults import Fault
from troyproxy.upstream.outbox import Write
from troyproxy.upstream.pooled.response import PooledResponse

ONE_WRITE: Final = 1 << 16
"""A body up to this many bytes is written together with the head."""
PIECE: Final = 1 << 20
"""Bytes of a larger body that are handed to the transport at once."""


class Home(Protocol):
    """The pool, as a connection needs it."""

    def free(self, connection: Connection) -> None:
        """The exchange is over and another may follow."""

    def gone(self, connection: Connection) -> None:
        """The connection will carry nothing more."""

    def post(self, write: Write, data: bytes) -> None:
        """Call *write* with *data*, together with the other small requests of this turn of the event loop."""


class Connection(asyncio.Protocol):
    """A protocol of the event loop, and the `Line` of its response."""

    __slots__ = (
        "_ended",
        "_home",
        "_loop",
        "_posted",
        "_response",
        "_spoiled",
        "_transport",
        "_unsent",
        "_writable",
        "idle",
        "idle_until",
        "kept",
        "lost",
        "open",
    )

    def __init__(self, home: Home) -> None:
        self._home, self._loop = home, asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._response: PooledResponse | None = None
        self._unsent: memoryview | None = None
        self._writable, self._spoiled, self._posted = True, False, False
        self.open = self.idle = self._ended = False
        """`open`: whether it may carry an exchange; `idle`: whether its pool keeps it."""
        self.kept = False
        """Whether it has carried one."""
        self.idle_until = 0.0
        """When it is too old to be used again, on the event loop's clock."""
        self.lost: asyncio.Future[None] = self._loop.create_future()
        """Done when the transport is."""

    def adopt(self) -> bool:
        """Begin to serve; False when it has ended before it could."""
        self.open = not self._ended
        return self.open

    # --- one exchange ---

    def ask(self, head: bytes, body: bytes, *, bodiless: bool) -> PooledResponse:
        """Send a request; return its response, whose head is to be awaited."""
        response = self._response = PooledResponse(self, self._loop, bodiless=bodiless)
        transport = self._transport
        if transport is None or not self.open:
            response.fail(Fault.RESET, "the connection was closed")
        elif len(body) <= ONE_WRITE:
            self._posted = True
            self._home.post(self._write, head + body if body else head)
        else:
            self._unsent = memoryview(body)
            if self._writable:
                self._push(head)
            else:
                transport.write(head)
        return response

    def _write(self, request: bytes) -> None:
        """Write a small request, unless its exchange has ended in the same turn."""
        self._posted = False
        if self.open and self._transport is not None:
            self._transport.write(request)

    def _push(self, head: bytes = b"") -> None:
        """Write what the peer takes; the *head* and the first piece are one call of the system, and no copy."""
        while self._unsent is not None and self._writable and self._transport is not None:
            piece, rest = self._unsent[:PIECE], self._unsent[PIECE:]
            self._unsent = rest or None
            if head:
                self._transport.writelines((head, piece))
                head = b""
            else:
                self._transport.write(piece)

    # --- the response's side ---

    def pause(self) -> None:
        """Read no more for now."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def begun(self, status: int) -> None:
        """Stop sending to a peer that has refused (RFC 9112, section 9.5); the connection ends with its answer."""
        if self._unsent is not None and status >= 400:
            self._unsent, self._spoiled = None, True

    def finished(self, *, reusable: bool) -> None:
        """The response is complete: serve again, or close where the next request would wait behind the rest of this."""
        self._response, transport = None, self._transport
        sent = transport is not None and self._unsent is None and not transport.get_write_buffer_size()
        if reusable and self.open and sent and not self._spoiled:
            self.kept = True
            self._home.free(self)
        else:
            self.close()

    def abort(self) -> None:
        """Close now, whatever is unsent or unread."""
        self._end()
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Close with a farewell where the protocol has one; what of a request was not taken is not waited for."""
        self._end()
        transport = self._transport
        if transport is None:
            return
        if transport.get_write_buffer_size():
            transport.abort()
        else:
            transport.close()

    def fail(self, detail: str) -> None:
        """End the exchange, if there is one, and the connection."""
        response = self._response
        if response is not None:
            response.fail(Fault.RESET, detail)
        self.abort()

    def _end(self) -> None:
        self._response = self._unsent = None
        self._ended = True
        if self.open:
            self.open = False
            self._home.gone(self)

    # --- the event loop's side ---

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP's, or TLS's over it
        """Take the *transport*."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take *data* for the running exchange; without one the peer is not heard."""
        if self._response is None:
            self.abort()
        elif self._posted:
            self.fail("it spoke before it was asked")
        else:
            self._response.received(data)

    def eof_received(self) -> None:
        """The peer will say nothing more; the transport closes itself."""
        response, transport = self._response, self._transport
        if response is not None and transport is not None:
            response.ended(whole=_said_goodbye(transport.get_extra_info("ssl_object")))
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is closed."""
        response = self._response
        if response is not None:
            response.fail(Fault.RESET, _detail(exc))
        self._end()
        self._transport = None
        if not self.lost.done():
            self.lost.set_result(None)

    def pause_writing(self) -> None:
        """The peer takes less than is written."""
        self._writable = False

    def resume_writing(self) -> None:
        """It caught up."""
        self._writable = True
        self._push()


def _said_goodbye(tls: ssl.SSLObject | None) -> bool:
    """Whether the peer itself ended what it said; without TLS's farewell anybody on the way may have done it.

    The event loops report either end alike. Behind a farewell there is nothing to read; else there may be, later.
    """
    try:
        return tls is None or tls.read(1) == b""
    except ssl.SSLError:
        return False


def _detail(exc: Exception | None) -> str:
    if isinstance(exc, OSError) and exc.errno is not None and exc.errno > 0:  # `strerror` may hold the address
        return f"{type(exc).__name__}: {os.strerror(exc.errno)}"
    return "the connection was closed" if exc is None else type(exc).__name__
