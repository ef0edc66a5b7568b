"""One response in transit: the head that is awaited, and the body that is pulled.

There is no task and no queue: what the connection brings is held in the parser, and a reader that has nothing waits on
one future. More than `HIGH` bytes that nobody took stop the connection's reading, so at most that and one read are
held; for a reader who wants the whole body, up to a limit, it is that limit, and nothing before the end wakes him. The
connection is given back as soon as the response is complete, whether it was read or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, Protocol

from troyproxy.ports import Ear, EarFailed, Headers, UpstreamFailed, gathered
from troyproxy.ports.upstream import MANY
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.decoding import decoded
from troyproxy.upstream.pooled.parser import Cut, ResponseParser
from troyproxy.upstream.pooled.prelude import Malformed

HIGH: Final = 1 << 16
"""Bytes of a body that wait for their reader before the connection stops reading."""


class Line(Protocol):
    """The connection, as a response needs it."""

    def pause(self) -> None:
        """Read no more for now."""

    def resume(self) -> None:
        """Read again."""

    def begun(self, status: int) -> None:
        """The head is there."""

    def finished(self, *, reusable: bool) -> None:
        """The response is complete."""

    def abort(self) -> None:
        """Nobody wants the rest, or it cannot be read."""


class PooledResponse:
    """`ports.UpstreamResponse`, and what its connection feeds."""

    __slots__ = (
        "_decoded",
        "_ear",
        "_enough",
        "_failure",
        "_line",
        "_loop",
        "_many",
        "_parser",
        "_paused",
        "_waiter",
        "answered",
        "headers",
        "status",
    )

    def __init__(self, line: Line, loop: asyncio.AbstractEventLoop, *, bodiless: bool) -> None:
        self._parser, self._loop = ResponseParser(bodiless=bodiless), loop
        self._line: Line | None = line
        self._waiter: asyncio.Future[None] | None = None
        self._failure: tuple[Fault, str] | None = None
        """Not the exception: with its traceback it would be a circle around the body."""
        self._decoded: AsyncIterator[bytes] | None = None
        self._ear: Ear | None = None
        self._enough, self._many = 0, MANY
        """How much must be held for a reader to be woken before the end, and how many pieces until some are joined."""
        self._paused = False
        self.answered = False
        """A byte came back."""
        self.status = 0
        self.headers: Headers = ()

    # --- the reader's side ---

    async def arrived(self) -> None:
        """Wait for the head. Raises UpstreamFailed; cancelled, it gives the connection up."""
        parser = self._parser
        try:
            while parser.headers is None:
                if self._failure is not None:
                    raise UpstreamFailed(*self._failure, body_sent=True)
                await self._news()
        except asyncio.CancelledError:
            self._leave()
            raise
        self.status, self.headers = parser.status, parser.headers
        if parser.coded:
            self.headers, body = decoded(self.status, self.headers, self)
            self._decoded = None if body is self else body

    def chunks(self) -> AsyncIterator[bytes]:
        """Return the body, to be read once."""
        return self._decoded or self

    async def read(self, limit: int, into: list[bytes], /) -> bool:
        """Put the body into *into*, unless it is over *limit* bytes: what arrives goes there, and wakes nobody."""
        if self._decoded is not None:
            return await gathered(self._decoded, limit, into)
        parser = self._parser
        parser.fill(into)
        self._ear, self._enough, self._many = None, limit, MANY
        try:
            return await self._all(limit)
        finally:
            self._enough = 0
            parser.part_with()
            if self._paused:
                self._resume()

    async def _all(self, limit: int) -> bool:
        """Wait until the whole body is held, or more than *limit* bytes."""
        parser = self._parser
        if self._paused:
            self._resume()
        while parser.held <= limit:
            if self._failure is not None:
                raise UpstreamFailed(*self._failure, body_sent=True)
            if parser.complete:
                return True
            await self._news()
        return False

    @property
    def whole(self) -> bytes | None:
        """The whole body, if it is there, unread, and needs no decoding."""
        return self._parser.whole() if self._decoded is None and self._failure is None else None

    def listen(self, ear: Ear) -> None:
        """Offer to *ear* what arrives while a reader waits; a body that has to be decoded is not offered."""
        self._ear = ear if self._decoded is None else None
        self._parser.taken = True

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        parser = self._parser
        while not parser.held:
            if self._failure is not None:
                raise UpstreamFailed(*self._failure, body_sent=True)
            if parser.complete:
                raise StopAsyncIteration
            await self._news()
        data = parser.take()
        if self._paused:
            self._resume()
        return data

    async def aclose(self) -> None:
        """Drop the rest. The connection was given back if the response was complete, and is closed if not."""
        self._leave()

    def _leave(self) -> None:
        line, self._line = self._line, None
        self._failure = self._failure or (Fault.RESET, "the response was closed")
        self._parser.stop()
        self._decoded = self._ear = None
        self._wake()
        if line is not None:
            line.abort()

    def _resume(self) -> None:
        self._paused = False
        if self._line is not None:
            self._line.resume()

    async def _news(self) -> None:
        self._waiter = self._loop.create_future()
        await self._waiter

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # --- the connection's side ---

    def received(self, data: bytes) -> None:
        """Take what the connection brought."""
        self.answered = True
        line, ear = self._line, self._ear
        if line is None or (ear is not None and (part := self._parser.only_chunk(data)) and self._heard(ear, part)):
            return
        self._parse(line, data)

    def _parse(self, line: Line, data: bytes) -> None:
        parser = self._parser
        begun = parser.headers is not None
        try:
            parser.feed(data)
        except Malformed as exc:
            self.fail(Fault.PROTOCOL, str(exc))
            line.abort()
            return
        if self._ear is not None and parser.held and self._heard(self._ear, parser.seen()):
            parser.take()
            return
        if not begun and parser.headers is not None:
            line.begun(parser.status)
        if parser.complete:
            self._finished(line)
        elif parser.held > self._enough or not begun:
            if parser.held > HIGH and not self._paused:
                self._paused = True
                line.pause()
        else:
            self._keep_few(parser.body)
            return
        self._wake()

    def _finished(self, line: Line) -> None:
        if self._paused:
            self._resume()
        self._line = None
        line.finished(reusable=self._parser.reusable)

    def _keep_few(self, pieces: list[bytes]) -> None:
        """Make one of the latest *pieces* that nobody is woken for, where they are many."""
        if len(pieces) > self._many:
            begun = self._many - MANY
            pieces[begun:] = [b"".join(pieces[begun:])]
            self._many += 1

    def _heard(self, ear: Ear, part: bytes) -> bool:
        """Whether *ear* has taken *part*, which is all that is held. Only a reader that waits has all that came before.

        No end is passed. An ear that raises has a bug of ours: its reader fails with that, and not the upstream.
        """
        waiter = self._waiter
        if waiter is None or waiter.done() or self._parser.complete:
            return False
        heard = False
        try:
            taken = ear(part)
            heard = True
        finally:
            if not heard:  # on its way it ends the connection, too: the event loop says so, and closes it
                waiter.set_exception(EarFailed())
        return taken

    def ended(self, *, whole: bool) -> None:
        """Nothing more will come; *whole*: the peer said so itself."""
        line = self._line
        try:
            self._parser.end(whole=whole)
        except Cut as exc:
            self.fail(Fault.RESET, str(exc))
            return
        self._line = None
        self._wake()
        if line is not None:
            line.finished(reusable=False)

    def fail(self, fault: Fault, detail: str) -> None:
        """End it behind what has arrived; only the first end counts."""
        if self._failure is None and not self._parser.complete:
            self._failure = fault, detail
            self._parser.release()
            self._line = None
            self._wake()
