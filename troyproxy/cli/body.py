"""The body of a request while it comes in: its pieces, kept as they came, and the wait for all of them.

A large body is hundreds of pieces. Whoever wants it whole is woken once, by its end, its size, its client's leaving or
the clock; and its bytes are copied once, when the pieces are joined. Nothing is known here of connections.
"""

from __future__ import annotations

import asyncio
from typing import Final

from troyproxy.proxy.answers import TooMuch

SMALL: Final = 1 << 12
"""Bytes of a piece that is not worth an object of its own: a body in chunks of two bytes must not cost forty."""

Pieces = list[bytes | bytearray]


def keep(pieces: Pieces, piece: bytes) -> None:
    """Keep *piece* behind *pieces*: as it is, or with other small ones."""
    if len(piece) >= SMALL or not pieces:
        pieces.append(piece)
    elif isinstance(last := pieces[-1], bytearray):
        last += piece
    else:
        pieces.append(bytearray(piece))


def pieces_of(parts: bytes | Pieces) -> Pieces:
    """Return *parts*, which may be one piece or none."""
    if isinstance(parts, bytes):
        return [parts] if parts else []
    return parts


def joined(pieces: Pieces) -> bytes:
    """Return what *pieces* hold, and let them hold nothing. One that was kept alone is not copied."""
    body = b"".join(pieces)
    pieces.clear()
    return body


class Gathering:
    """Waits until a body is here, of which *pieces* are by now; *limit* in bytes.

    There is one timer, which looks again when something came meanwhile.
    """

    __slots__ = ("_done", "_end", "_last", "_late", "_limit", "_loop", "_pieces", "_size", "_stall_s", "_timer")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, pieces: Pieces, *, limit: int, stall_s: float, total_s: float
    ) -> None:
        self._pieces, self._size, self._limit = pieces, sum(map(len, pieces)), limit
        self._loop, self._last, self._stall_s = loop, loop.time(), stall_s
        self._end, self._late = self._last + total_s, False
        self._done: asyncio.Future[None] = loop.create_future()
        self._timer = loop.call_at(self._due, self._look)
        if self._size > limit:
            self.end()

    @property
    def _due(self) -> float:
        return min(self._end, self._last + self._stall_s)

    def take(self, piece: bytes) -> None:
        """Take the next piece."""
        keep(self._pieces, piece)
        self._size += len(piece)
        self._last = self._loop.time()
        if self._size > self._limit:
            self.end()

    def end(self) -> None:
        """Wake who waits: nothing more is to come, or it is too much."""
        if not self._done.done():
            self._done.set_result(None)

    def _look(self) -> None:
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._look)
        elif not self._done.done():
            self._late = True
            self.end()

    async def over(self) -> None:
        """Wait for the end. The timer goes with who waits."""
        try:
            await self._done
        finally:
            self._timer.cancel()

    def body(self) -> bytes:
        """Return what came, once. Raises TooMuch, and TimeoutError when it was waited for too long."""
        if self._late:
            raise TimeoutError
        if self._size > self._limit:
            raise TooMuch
        return joined(self._pieces)
