"""The client's side of a request: what was sent to it, and whether it is still there.

`send` returns silently once a client has gone (uvicorn, ASGI 2.3) or raises OSError (2.4), so the only reliable sign
is `http.disconnect` on `receive`. `Disconnect` watches it beside the work and cancels the work when it comes.
"""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import Final, Self

from troyproxy.ports import Headers
from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import Call
from troyproxy.wire.sse import Frame

LOGGER: Final = logging.getLogger("troyproxy")


PIECE: Final = 1 << 16
"""Bytes of one message of a whole answer."""


class ClientGone(Exception):
    """The client hung up, or did not read for so long that it was dropped."""


class Client:
    """Sends the answer, one message at a time; knows whether it has begun and whether it is complete."""

    def __init__(self, call: Call, send: Send, *, stall_s: float) -> None:
        self._call, self._send, self._stall_s = call, send, stall_s
        self._turn = asyncio.Lock()
        self._dropped = False
        self.started = False
        self.finished = False
        self.sent_at = 0.0
        """When the last message went out, on the event loop's clock."""

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a complete answer; nobody gets a word in between head and body. Raises ClientGone.

        A server takes what one message brings, however large, and waits for the client before the next. So a large body
        goes in pieces: a client that does not read is noticed, and each piece has its own time.
        """
        length = (b"content-length", str(len(body)).encode())
        async with self._turn:
            await self._head(status, (*headers, length))
            for at in range(0, len(body) - PIECE, PIECE):
                await self._put({"type": "http.response.body", "body": body[at : at + PIECE], "more_body": True})
            self.finished = True
            await self._put({"type": "http.response.body", "body": _last_piece(body)})

    async def open(self, status: int, headers: Headers) -> bool:
        """Send the head unless it is out; return whether this call did. Raises ClientGone."""
        async with self._turn:
            if self.started:
                return False
            await self._head(status, headers)
            return True

    async def frames(self, frames: list[Frame], *, more: bool) -> None:
        """Send whole SSE frames; without *more* they are the last. Raises ClientGone."""
        async with self._turn:
            if self.finished:
                return
            self.finished = not more
            self._call.frames = frames
            body = frames[0].raw if len(frames) == 1 else b"".join(frame.raw for frame in frames)
            before = self.sent_at
            await self._put({"type": "http.response.body", "body": body, "more_body": more})
            if not self._call.frames:  # a layer keeps them back, as the guard does: the client has heard nothing
                self.sent_at = before

    async def part(self, body: bytes, *, more: bool) -> None:
        """Send a piece of a body that is no stream of frames; without *more* it is the last. Raises ClientGone."""
        async with self._turn:
            self.finished = not more
            await self._put({"type": "http.response.body", "body": body, "more_body": more})

    async def _head(self, status: int, headers: Headers) -> None:
        self.started = True
        self._call.ledger.status = status
        await self._put({"type": "http.response.start", "status": status, "headers": list(headers)})

    async def _put(self, message: dict[str, object]) -> None:
        if self._dropped:
            raise ClientGone("the client was dropped")
        try:
            async with asyncio.timeout(self._stall_s):
                await self._send(message)
        except OSError as exc:  # a timeout is one, too
            self._dropped = True
            said = "does not read" if isinstance(exc, TimeoutError) else "has gone"
            raise ClientGone(f"the client {said}") from exc
        self.sent_at = asyncio.get_running_loop().time()


def _last_piece(body: bytes) -> bytes:
    return body[(len(body) - 1) // PIECE * PIECE :] if len(body) > PIECE else body


class Disconnect:
    """Cancels the task inside the ``async with`` when the client leaves, and swallows that cancellation at the end.

    `gone` tells afterwards. A disconnect after the whole answer went out is none; somebody else's cancellation passes
    through untouched, also when both come at once.
    """

    def __init__(self, receive: Receive, client: Client) -> None:
        self._receive, self._client = receive, client
        self._closed = False
        self.gone = False

    async def __aenter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:  # pragma: no cover -- an ASGI app always runs in a task
            raise RuntimeError("no task to watch")
        self._task, self._cancelling = task, task.cancelling()
        loop = asyncio.get_running_loop()
        self._watcher = loop.create_task(self._watch())  # kept here, ended and awaited in __aexit__
        return self

    async def _watch(self) -> None:
        message = await self._receive()
        while message["type"] != "http.disconnect":
            await asyncio.sleep(0)  # a host that repeats itself without waiting must not stop the loop
            message = await self._receive()
        if not (self._closed or self._client.finished):
            self.gone = True
            self._task.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._closed = True
        self._watcher.cancel()
        try:
            await asyncio.wait({self._watcher})
        finally:
            ours = self.gone and self._task.uncancel() <= self._cancelling
            watcher = self._watcher
            del self._watcher  # a circle through its traceback would keep the request for the collector, body and all
        if not watcher.cancelled() and (error := watcher.exception()) is not None:
            LOGGER.warning("the client could not be watched: %s", type(error).__name__)
        return ours and kind is not None and issubclass(kind, asyncio.CancelledError)
