"""The half of an exchange to which a request's body comes, as it arrives, and where an app finds it.

By `receive` it comes in parts, as ASGI has it; our own intake takes it whole, when it is all here or as soon as it is.
"""

from __future__ import annotations

import asyncio

from troyproxy.cli import framing
from troyproxy.cli.body import Gathering, Pieces, joined, keep, pieces_of
from troyproxy.cli.line import Line
from troyproxy.proxy.answers import Message


class Inbox:
    """What came of one request's body."""

    _line: Line
    _waits: bool
    """Whether the client waits to be told to go on."""
    response_complete = disconnected = False
    _more_body = True
    _parts: bytes | Pieces = b""
    """What came and was not taken: mostly one piece."""
    _news = False
    _arrived: asyncio.Event | None = None
    _gathering: Gathering | None = None
    """What takes the body instead, while somebody waits for all of it."""

    # What the connection tells.

    def take(self, part: bytes) -> int:
        """Take a part of the body; return how many bytes wait to be received."""
        if self._gathering is not None:
            self._gathering.take(part)
            return 0
        self._tell()
        if not self._parts:
            self._parts = part
            return len(part)
        parts = self._parts = pieces_of(self._parts)
        keep(parts, part)
        return sum(map(len, parts))

    def whole(self) -> None:
        """The body has ended."""
        self._more_body = False
        self._tell()

    def goes_on(self) -> None:
        """The body has not ended; it only seemed so."""
        self._more_body, self._news = True, False

    def _tell(self) -> None:
        self._news = True
        if self._arrived is not None:
            self._arrived.set()
        if self._gathering is not None:
            self._gathering.end()

    # What the app sees.

    @property
    def _over(self) -> bool:
        return self.disconnected or self.response_complete

    def take_body(self) -> bytes | None:
        """Return the whole body, once it is all here; a client that waits to be told to go on has gone on."""
        if self._more_body or self.disconnected or not self._news:
            return None
        self._news = False
        body, self._parts = self._parts, b""
        return body if isinstance(body, bytes) else joined(body)

    async def gather(self, limit: int, *, stall_s: float, total_s: float) -> bytes | None:
        """Return the whole body, or None when the client leaves. Raises TooMuch, TimeoutError."""
        self._ask()
        parts, self._parts = pieces_of(self._parts), b""
        gathering = Gathering(self._line.loop, parts, limit=limit, stall_s=stall_s, total_s=total_s)
        self._gathering = gathering
        if self._over or (self._news and not self._more_body):
            gathering.end()
        try:
            await gathering.over()
        finally:
            self._gathering, self._news = None, False
        return None if self._over else gathering.body()

    async def receive(self) -> Message:
        """Return the next part of the body, or the client's leaving."""
        self._ask()
        if not (self._over or self._news):
            await self._something()
        if self._over:
            return {"type": "http.disconnect"}
        self._news = False
        body, self._parts = joined(pieces_of(self._parts)), b""
        return {"type": "http.request", "body": body, "more_body": self._more_body}

    async def _something(self) -> None:
        if self._arrived is None:
            self._arrived = asyncio.Event()
        self._arrived.clear()
        await self._arrived.wait()

    def _ask(self) -> None:
        """Let the rest of the body come."""
        line = self._line
        if self._waits and not line.transport.is_closing():
            line.outbox.post(line.write, framing.CONTINUE)
            self._waits = False
        if line.flow.read_paused and not self._over:
            line.flow.resume_reading()
