"""Pulls an upstream's body: as batches of SSE frames, or whole under a cap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from troyproxy.ports import UpstreamResponse
from troyproxy.wire.sse import Frame, FrameDecoder, StreamTooLong

MANY: Final = 1024


class FrameReader:
    """Whole frames of one stream, as they arrive. A cancelled read may be followed by a close only."""

    __slots__ = ("_at_once", "_back", "_ended", "_failure", "_feed", "_read", "_response")

    def __init__(self, response: UpstreamResponse, *, limit: int) -> None:
        self._response, decoder = response, FrameDecoder(limit)
        self._read = aiter(response.chunks()).__anext__
        self._feed, self._at_once = decoder.feed, decoder.at_once
        self._ended = False
        self._back: list[Frame] = []
        self._failure: StreamTooLong | None = None

    async def next(self) -> list[Frame]:
        """Return the next frames, at least one; an empty list at the end. Raises UpstreamFailed, StreamTooLong."""
        if self._back:
            frames, self._back = self._back, []
            return frames
        if self._failure is not None:
            raise self._failure
        while not self._ended:
            try:
                frames = self._feed(await self._read())
            except StopAsyncIteration:
                self._ended = True
                frames = self._feed(b"", last=True)
            except StreamTooLong as exc:
                frames = self._late(exc)
            if frames:
                return frames
        return []

    def listen(self, ear: Callable[[list[Frame]], bool]) -> None:
        """Offer to *ear* the frames of a read that holds nothing else, while `next` is waited for; `next` has the rest.

        It returns whether it has taken them: all, or none. What is only pulled is not offered.
        """
        at_once = self._at_once

        def hear(chunk: bytes) -> bool:
            frames = at_once(chunk)
            return ear(frames) if frames else False

        self._response.listen(hear)

    def _late(self, exc: StreamTooLong) -> list[Frame]:
        """Return what came before an event that is too long: that fails only after those."""
        self._failure = exc
        if not exc.frames:
            raise exc
        return exc.frames

    def give_back(self, frames: list[Frame]) -> None:
        """Put frames that were read but not used before what comes next."""
        self._back = frames


async def read_whole(response: UpstreamResponse, *, limit: int, into: list[bytes]) -> bool:
    """Read the body into *into* (which keeps what came when this is cancelled); False when it is over *limit*.

    The pieces are for `bytes.join`, which copies once, and a body of one piece never. Of many one is made now and then,
    since each costs more than its bytes.
    """
    size = begun = 0
    async for chunk in response.chunks():
        into.append(chunk)
        size += len(chunk)
        if size > limit:
            return False
        if len(into) - begun == MANY:
            into[begun:] = [b"".join(into[begun:])]
            begun += 1
    return True
