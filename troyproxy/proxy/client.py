"""The client's side of a request: what was sent to it, and whether it still reads. `disconnect` tells when it leaves.

`send` returns silently once a client has gone (uvicorn, ASGI 2.3) or raises OSError (2.4).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Generator
from types import coroutine
from typing import Final

from troyproxy.ports import Headers
from troyproxy.proxy.alarm import Alarm, Bell
from troyproxy.proxy.answers import Peer, Send
from troyproxy.proxy.call import Call
from troyproxy.proxy.lane import Lane, lane_of
from troyproxy.wire.sse import Frame

PIECE: Final = 1 << 17
"""Bytes of one message of a whole answer."""
SENDING: Final = math.inf
_NOTHING: Final = object()


class ClientGone(Exception):
    """The client hung up, or did not read for so long that it was dropped."""


class Client:
    """Sends the answer, one message at a time; knows whether it has begun and whether it is complete.

    It belongs to the task that makes it. Only `beside` lets another one send.
    """

    __slots__ = (
        "__weakref__",
        "_beside",
        "_call",
        "_dropped",
        "_lane",
        "_loop",
        "_peer",
        "_send",
        "_stall_s",
        "alarm",
        "finished",
        "sent_at",
        "started",
    )

    def __init__(self, call: Call, send: Send, *, stall_s: float, bell: Bell | None = None) -> None:
        self._call, self._send, self._stall_s = call, send, stall_s
        self._peer = call.peer
        self._beside: asyncio.Task[None] | None = None
        self._dropped = False
        self._lane: Lane | None = None
        self.alarm = Alarm(bell)
        """Times whatever the request waits for, one thing after the other."""
        self._loop = self.alarm.bell.loop
        self.started = False
        self.finished = False
        self.sent_at = 0.0
        """When the last message went out, on the event loop's clock; `SENDING` while one is on its way."""

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a complete answer; nobody gets a word in between head and body. Raises ClientGone.

        A server takes what one message brings, however large, and waits for the client before the next. So the end of a
        large body waits until what is before it was taken, and all of it goes in pieces where only that tells how far
        the client is: one that does not read is noticed, and each piece has its own time.
        """
        if self._beside is not None:
            await self._turn()
        head = self._head(status, (*headers, (b"content-length", b"%d" % len(body))))
        if len(body) <= PIECE and self.ready:
            await self._both(head, {"type": "http.response.body", "body": body})
            return
        await self._put(head)
        last = max(0, len(body) - 1) // PIECE * PIECE
        # Our own server takes any buffer, and tells what it still has; a layer that edits the answer may not.
        peer = self._peer if last and not self._call.gates else None
        pieces, size = (body, PIECE) if peer is None else (memoryview(body), last)
        for at in range(0, last, size):
            await self._put({"type": "http.response.body", "body": pieces[at : at + size], "more_body": True})
        if peer is not None:
            await self._taken(peer)
        self.finished = True
        await self._put({"type": "http.response.body", "body": pieces[last:]})

    async def _taken(self, peer: Peer) -> None:
        """Wait until the client has taken what was sent. As long as it takes a piece in time, it has time for more."""
        self.sent_at, left = SENDING, peer.unsent
        while peer.paused:
            try:
                with self.alarm.until(self._loop.time() + self._stall_s):
                    await self._send({"type": "http.response.body", "body": b"", "more_body": True})
            except OSError as exc:
                before, left = left, peer.unsent
                if before - left < PIECE or not isinstance(exc, TimeoutError):
                    raise self._gone(exc) from exc
            else:
                return

    async def _both(self, head: dict[str, object], body: dict[str, object]) -> None:
        """Send a small answer while `ready`: nothing waits for the client, so nothing is timed."""
        try:
            await self._send(head)
            ready, self.finished = self.ready, True
            if ready:
                await self._send(body)
        except OSError as exc:
            raise self._gone(exc) from exc
        if not ready:
            await self._put(body)

    async def open(self, status: int, headers: Headers) -> bool:
        """Send the head unless it is out; return whether this call did. Raises ClientGone."""
        if self._beside is not None:
            await self._turn()
        if self.started:
            return False
        await self._put(self._head(status, headers))
        return True

    async def frames(self, frames: list[Frame], *, more: bool) -> None:
        """Send whole SSE frames; without *more* they are the last. Raises ClientGone."""
        if self._beside is not None:
            await self._turn()
        if self.finished:
            return
        self.finished = not more
        self._call.frames = frames
        before = self.sent_at
        await self._put({"type": "http.response.body", "body": _joined(frames), "more_body": more})
        if not self._call.frames:  # a layer keeps them back, as the guard does: the client has heard nothing
            self.sent_at = before

    async def go_on(self, frames: list[Frame], now: float) -> None:
        """Send more whole SSE frames, as `frames` does; *now* is the loop's time. Raises ClientGone.

        It is for the many that follow the first: where nothing waits for the client, nothing is timed.
        """
        if self._lane is not None and self.at_once(frames, now):
            return
        if not self.ready:
            await self.frames(frames, more=True)
            return
        self._call.frames = frames
        try:
            await self._send({"type": "http.response.body", "body": _joined(frames), "more_body": True})
        except OSError as exc:
            raise self._gone(exc) from exc
        if self._call.frames:
            self.sent_at = now

    @property
    def ready(self) -> bool:
        """Whether `at_once` may send: our own server is in front, and there is nothing to wait for."""
        peer = self._peer
        return not (peer is None or peer.paused or self._beside is not None or self._dropped or self.finished)

    def go_straight(self) -> None:
        """The head is out: from here on `at_once` makes no messages, where only edits of frames are in between."""
        self._lane = None if self._peer is None else lane_of(self._send, self._peer)

    def at_once(self, frames: list[Frame], now: float) -> bool:
        """Send more whole SSE frames while `ready`, without the task: for callbacks of the event loop.

        False: it is not, and nothing was sent. That the client has gone is found out by whoever sends next.
        """
        peer = self._peer  # as `ready` has it, without a call
        if peer is None or peer.paused or self._beside is not None or self._dropped or self.finished:
            return False
        lane = self._lane
        if lane is None:
            self._through(frames, now)
            return True
        for edit in lane.edits:
            frames = edit(frames, False)
        if frames:
            put = lane.put  # a callable in a local name is called faster
            put(frames[0].raw if len(frames) == 1 else _joined(frames))
            self.sent_at = now
        return True

    def _through(self, frames: list[Frame], now: float) -> None:
        """Send a message through whatever there is. A layer that waits all the same is waited for beside the walk."""
        self._call.frames = frames
        sending = self._send({"type": "http.response.body", "body": _joined(frames), "more_body": True}).__await__()
        try:
            waits_for = next(sending, _NOTHING)
        except OSError:
            self._dropped = True
            return
        if waits_for is not _NOTHING:
            self._beside = self._loop.create_task(self._rest(waits_for, sending))
            self._beside.add_done_callback(self._said)
        if self._call.frames:
            self.sent_at = now

    async def _rest(self, waits_for: object, sending: Generator[object, None, None]) -> None:
        try:
            await _going_on(waits_for, sending)
        except OSError:
            self._dropped = True

    async def part(self, body: bytes, *, more: bool) -> None:
        """Send a piece of a body that is no stream of frames; without *more* it is the last. Raises ClientGone."""
        self.finished = not more
        await self._put({"type": "http.response.body", "body": body, "more_body": more})

    def beside(self, status: int, headers: Headers, comment: Frame) -> asyncio.Task[None]:
        """Send *comment*, and the head before it unless it is out, in a task of its own. The walk's messages wait.

        To be called while none of them is on its way. The task raises ClientGone.
        """
        self._beside = task = self._loop.create_task(self._aside(status, headers, comment))
        task.add_done_callback(self._said)
        return task

    async def _aside(self, status: int, headers: Headers, comment: Frame) -> None:
        alarm = Alarm(self.alarm.bell)
        try:
            if not self.started:
                await self._put(self._head(status, headers), alarm)
            self._call.frames = [comment]
            await self._put({"type": "http.response.body", "body": comment.raw, "more_body": True}, alarm)
        finally:
            alarm.close()

    def _said(self, _: asyncio.Task[None]) -> None:
        self._beside = None

    async def _turn(self) -> None:
        """Wait until what is said beside the walk is said."""
        while self._beside is not None:
            await asyncio.wait({self._beside})

    def _head(self, status: int, headers: Headers) -> dict[str, object]:
        self.started = True
        return {"type": "http.response.start", "status": status, "headers": self._call.head(status, headers)}

    async def _put(self, message: dict[str, object], alarm: Alarm | None = None) -> None:
        if self._dropped:
            raise ClientGone("the client was dropped")
        self.sent_at = SENDING
        try:
            if self._peer is not None and not self._peer.paused:  # then nothing waits for the client
                await self._send(message)
            else:
                with (alarm or self.alarm).until(self._loop.time() + self._stall_s):
                    await self._send(message)
        except OSError as exc:  # a timeout is one, too
            raise self._gone(exc) from exc
        self.sent_at = self._loop.time()

    def _gone(self, exc: OSError) -> ClientGone:
        self._dropped = True
        return ClientGone("the client does not read" if isinstance(exc, TimeoutError) else "the client has gone")


def _joined(frames: list[Frame]) -> bytes:
    return frames[0].raw if len(frames) == 1 else b"".join([frame.raw for frame in frames])


@coroutine
def _going_on(waits_for: object, sending: Generator[object, None, None]) -> Generator[object, None, None]:
    """Go on with what has begun elsewhere and waits for something."""
    yield waits_for
    yield from sending
