"""What both network adapters hold to: bounds of a pool, headers that are theirs to write, credentials in a URL."""

from __future__ import annotations

import base64
from typing import Final
from urllib.parse import unquote

OURS: Final = frozenset({b"host", b"content-length", b"transfer-encoding", b"connection", b"expect"})
"""Framing is written by the adapter, never taken from the caller."""
KEEPALIVE_S: Final = 4.0
"""How long an idle connection is kept: less than the 5 s after which common servers close theirs."""
MAX_CONNECTIONS: Final = 2048
"""Of one provider."""


def basic(userinfo: bytes) -> bytes:
    """Return the header value of ``user:password`` as it stands in a URL."""
    return b"Basic " + base64.b64encode(unquote(userinfo.decode("ascii")).encode())
