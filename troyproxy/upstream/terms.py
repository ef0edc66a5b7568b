"""What both network adapters hold to: bounds of a pool, headers that are theirs to write, credentials in a URL, and
what on a kept connection is no answer."""

from __future__ import annotations

import base64
from typing import Final
from urllib.parse import unquote

from troyproxy.ports import Headers

OURS: Final = frozenset({b"host", b"content-length", b"transfer-encoding", b"connection", b"expect"})
"""Framing is written by the adapter, never taken from the caller."""
KEEPALIVE_S: Final = 4.0
"""How long an idle connection is kept: less than the 5 s after which common servers close theirs."""
MAX_CONNECTIONS: Final = 2048
"""Of one provider."""
TIMED_OUT: Final = 408


def basic(userinfo: bytes) -> bytes:
    """Return the header value of ``user:password`` as it stands in a URL."""
    return b"Basic " + base64.b64encode(unquote(userinfo.decode("ascii")).encode())


def is_farewell(status: int, headers: Headers) -> bool:
    """Whether this head, on a connection that had served before, says that it was idle for too long.

    Node, HAProxy and others send ``408`` with ``Connection: close`` before they close (RFC 9110, section 15.5.9). When
    a request is on its way just then, it crosses the farewell, and was not read. *headers* are in lower case.
    """
    return status == TIMED_OUT and any(
        name == b"connection" and b"close" in {option.strip().lower() for option in value.split(b",")}
        for name, value in headers
    )
