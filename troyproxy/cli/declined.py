"""A request that offers to speak another protocol is read as if it did not (RFC 9110, section 7.8).

Java's client offers HTTP/2 with the first request of a connection, curl when it is told to. httptools ends such a
message with its head: the body would be lost or, in a read of its own, be taken for a request that nobody has sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

import httptools

from troyproxy.cli.counted import parser_of

FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})
"""Headers that say where a body ends."""


class Listener(Protocol):
    """What hears of the requests of a connection."""

    def on_message_begin(self) -> None: ...
    def on_url(self, url: bytes, /) -> None: ...
    def on_header(self, name: bytes, value: bytes, /) -> None: ...
    def on_headers_complete(self) -> None: ...
    def on_body(self, body: bytes, /) -> None: ...
    def on_message_complete(self) -> None: ...


def behind(listener: Listener, headers: Iterable[tuple[bytes, bytes]]) -> httptools.HttpRequestParser:
    """Return a parser that stands behind the head with *headers*, which *listener* has heard."""
    told = _Told(listener)
    parser = parser_of(told)
    lines = b"".join(b"%b: %b\r\n" % header for header in headers if header[0] in FRAMING)
    parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % lines)
    told.heard = False
    return parser


class _Told:
    """Passes on what is heard, but for the head that was heard already."""

    def __init__(self, listener: Listener) -> None:
        self._listener, self.heard = listener, True
        self.on_body, self.on_message_complete = listener.on_body, listener.on_message_complete

    def on_message_begin(self) -> None:
        if not self.heard:
            self._listener.on_message_begin()

    def on_url(self, url: bytes) -> None:
        if not self.heard:
            self._listener.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.heard:
            self._listener.on_header(name, value)

    def on_headers_complete(self) -> None:
        if not self.heard:
            self._listener.on_headers_complete()
