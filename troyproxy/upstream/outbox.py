"""Small writes of one turn of an event loop: the first goes at once, the others together when the turn is over.

A write to a socket wakes whoever sleeps at its other end, and that costs more than the bytes do. Many requests are
served in one turn: when their writes come one by one, with work between them, the other process falls asleep and is
woken for each; when they come together, it is woken once. The server uses this towards its clients, the transport
towards the providers. Who is alone waits for nobody. Order is kept, and nothing large waits here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

Write = Callable[[bytes], None]

MOST: Final = 1 << 16
"""Bytes that wait at most; with more, all are written at once."""


class Outbox:
    """Belongs to one event loop."""

    __slots__ = ("_loop", "_size", "_turn", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._turn = False
        """Whether something was written in this turn."""
        self._waiting: list[tuple[Write, bytes]] = []
        self._size = 0

    def post(self, write: Write, data: bytes) -> None:
        """Call *write* with *data*: now if it is the first of this turn, else when that is over. It must not raise."""
        if not self._turn:
            self._turn = True
            self._loop.call_soon(self._over)
            write(data)
            return
        self._waiting.append((write, data))
        self._size += len(data)
        if self._size > MOST:
            self.flush()

    def flush(self) -> None:
        """Write what waits, now: before something that is written or closed without waiting here."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        for write, data in waiting:
            write(data)

    def _over(self) -> None:
        self._turn = bool(self._waiting)
        if self._turn:
            self._loop.call_soon(self._over)  # what is posted while these are written comes behind them
            self.flush()
