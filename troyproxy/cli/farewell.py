"""How a client's connection ends: what was written goes out first, but not for a client that has stopped reading.

A transport that is closed waits for its last bytes without end: whoever asks and never reads would hold a connection
for ever. Nothing is known here of requests.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Final

UNREAD_S: Final = 60.0
"""How long none of the last bytes may be taken."""


def leave(transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
    """Close *transport*, and drop what its client does not take."""
    transport.close()
    left = transport.get_write_buffer_size()
    if left:
        loop.call_later(UNREAD_S, _look, transport, loop, left)


def _look(transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, before: int) -> None:
    left = transport.get_write_buffer_size()
    if 0 < left < before:
        loop.call_later(UNREAD_S, _look, transport, loop, left)
    elif left:
        transport.abort()


def waits(transport: asyncio.Transport) -> bool:
    """Whether the client sent something that was not read yet."""
    found = transport.get_extra_info("socket")
    with suppress(OSError), socket.socket(fileno=socket.dup(found.fileno())) as copy:
        return copy.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
    return False
