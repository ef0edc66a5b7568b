"""One response in transit: the head that is awaited, and the body that is pulled.

There is no task and no queue: what the connection brings is held in the parser, and a reader that has nothing waits on
one future. More than `HIGH` bytes that nobody took stop the connection's reading, so at most that and one read are
held. The connection is given back as soon as the response is complete, whether it was read or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, Protocol

from troyproxy.ports import Ear, Headers, UpstreamFailed
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
        "_failure",
        "_line",
        "_parser",
        "_paused",
        "_waiter",
        "answered",
        "headers",
        "status",
    )

    def __init__(self, line: Line, *, bodiless: bool) -> None:
        self._parser = ResponseParser(bodiless=bodiless)
        self._line: Line | None = line
        self._waiter: asyncio.Future[None] | None = None
        self._failure: tuple[Fault, str] | None = None
        """Not the exception: with its traceback it would be a circle around the body."""
        self._decoded: AsyncIterator[bytes] | None = None
        self._ear: Ear | None = None
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

    @property
    def whole(self) -> bytes | None:
        """The whole body, if it is there, unread, and needs no decoding."""
        return self._parser.whole() if self._decoded is None and self._failure is None else None

    def listen(self, ear: Ear) -> None:
        """Offer to *ear* what arrives while a reader waits; a body that has to be decoded is not offered."""
        self._ear = ear if self._decoded is None else None

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
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # --- the connection's side ---

    def received(self, data: bytes) -> None:
        """Take what the connection brought."""
        self.answered = True
        parser, line = self._parser, self._line
        if line is None:
            return
        begun = parser.headers is not None
        try:
            parser.feed(data)
        except Malformed as exc:
            self.fail(Fault.PROTOCOL, str(exc))
            line.abort()
            return
        if self._ear is not None and self._heard(self._ear):
            return
        if not begun and parser.headers is not None:
            line.begun(parser.status)
        if parser.complete:
            self._finished(line)
        elif parser.held > HIGH and not self._paused:
            self._paused = True
            line.pause()
        if parser.held or parser.complete or not begun:
            self._wake()

    def _finished(self, line: Line) -> None:
        if self._paused:
            self._resume()
        self._line = None
        line.finished(reusable=self._parser.reusable)

    def _heard(self, ear: Ear) -> bool:
        """Whether *ear* has taken what is held. Only a reader that waits has all that came before; no end is passed."""
        waiter, parser = self._waiter, self._parser
        if waiter is None or waiter.done() or parser.complete or not parser.held:
            return False
        body = parser.body
        if not ear(body[0] if len(body) == 1 else b"".join(body)):
            return False
        body.clear()
        parser.held, parser.taken = 0, True
        return True

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
