"""What our server itself says beside what an app sends: words of HTTP/1.1, and the answer of an app that gave none."""

from __future__ import annotations

from math import inf
from typing import Final

from uvicorn.protocols.http.httptools_impl import HEADER_VALUE_RE

BODILESS: Final = frozenset({204, 304})
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
FAILED: Final = b"Internal Server Error"
FAILED_HEADERS: Final = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"%d" % len(FAILED)),
    (b"connection", b"close"),
)
LARGE: Final = 1 << 14
"""Bytes of a body that is not worth a copy to go out with its head."""
LENGTH: Final = b"content-length: "
CODING: Final = b"transfer-encoding: "
CONNECTION: Final = b"connection: "
FRAMING: Final = frozenset({LENGTH, CODING, CONNECTION})
"""How the lines begin that say where an answer ends, and whether its connection does."""
CHUNKS: Final = frozenset({"1.1", "2.0"})
"""Versions of HTTP whose clients know chunks; for others an answer of unknown length ends with its connection."""
ENDLESS: Final = inf
"""What is left of such an answer."""
ENDS: Final = frozenset({0, ENDLESS})
"""What may be left at the end."""
CLOSE: Final = b"connection: close\r\n"
CHUNKED: Final = b"transfer-encoding: chunked\r\n"
END: Final = b"0\r\n\r\n"
UNFIT: Final = bytes(byte for byte in range(256) if HEADER_VALUE_RE.match(bytes((byte,))))
"""What may not stand in a header's value. To delete it takes a third of the time that a search for it takes."""
_TOO_LARGE: Final = b"the head of the request is too large"
TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_TOO_LARGE), _TOO_LARGE)
)
