"""What one connection may hold of this process before anybody knows who it is: uvicorn's HTTP/1.1 protocol, bounded.

uvicorn bounds bodies (it stops reading, and the app has a limit of its own) but neither the head nor what stands
between the pieces of a body, and it waits for them without end. The layers come too late for that: there is no request
yet. So here

    a head over `MAX_HEAD`              431, and the connection ends
    trailers, chunk extensions over it  the connection ends
    silence while nothing is served     the connection ends after the keep-alive time
    a client that leaves                the request that is being served hears of it, whatever was sent behind it
    the end of the server               what a client has sent by then is served, and nothing after it

and trailers are read but never become headers: a request that is being served must not change under its reader, nor
may anything be said behind a body that a proxy in front looks for before it (RFC 9110, section 6.5.1).
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Final

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MAX_HEAD: Final = 1 << 21
"""Bytes that may come without the end of a head or a byte of a body. A wrong key of a megabyte is still told that."""
LAST_S: Final = 1.0
"""How long a stopping server waits for the rest of a request that is on its way."""
MAX_AHEAD: Final = 8
"""Requests that may wait behind the one that is served. With more nothing is read, and a client's leaving not heard."""
_BODY: Final = b"the head of the request is too large"
TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_BODY), _BODY)
)


class Connection(HttpToolsProtocol):
    """One client connection."""

    _unused = 0
    """Bytes since something came of them."""
    _in_head = False
    _served: RequestResponseCycle | None = None
    """The latest request whose turn came; `cycle` is the latest that was read."""
    _ending = False
    """The next request is the last."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Wait for the first request no longer than for any other."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is served, also when others wait behind it."""
        if self._served is not None and not self._served.response_complete:
            self._served.disconnected = True
            self._served.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        self._unused += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._unused > MAX_HEAD:
            self._refuse()
        elif self._idle:
            self._wait()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._unused, self._in_head = 0, True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a trailer is dropped."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Serve the request."""
        self._unused, self._in_head = 0, False
        super().on_headers_complete()
        self.cycle.keep_alive = self.cycle.keep_alive and not self._ending
        if self.pipeline and len(self.pipeline) <= MAX_AHEAD:
            self.flow.resume_reading()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._unused = 0
        super().on_body(body)

    def shutdown(self) -> None:
        """End after what is served now. Without that: at once, but for a client whose request may be on its way."""
        if not self._idle or not self._awaited:
            super().shutdown()
            return
        self._ending = True
        self.loop.call_later(LAST_S, self._end_if_idle)

    @property
    def _awaited(self) -> bool:
        """Whether a request is on its way, as far as can be known: begun, or with the system, or the first one."""
        return self.cycle is None or self._in_head or _waits(self.transport)

    def _end_if_idle(self) -> None:
        if self._idle:
            self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._served = cycle
        super()._start_asgi_task(cycle, app)

    @property
    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        """Close the connection unless something comes, or begins to be served, within the keep-alive time."""
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _refuse(self) -> None:
        if self._in_head and self._idle:
            self.transport.write(TOO_LARGE)
        self.transport.close()


def _waits(transport: asyncio.Transport) -> bool:
    """Whether the client sent something that was not read yet."""
    found = transport.get_extra_info("socket")
    with suppress(OSError), socket.socket(fileno=socket.dup(found.fileno())) as copy:
        return copy.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
    return False
