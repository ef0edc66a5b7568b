"""Pulls an upstream's body as batches of SSE frames."""

from __future__ import annotations

from troyproxy.ports import Ear, UpstreamResponse
from troyproxy.wire.sse import Frame, FrameDecoder, StreamTooLong


class FrameReader:
    """Whole frames of one stream, as they arrive. A cancelled read may be followed by a close only."""

    __slots__ = ("_back", "_ended", "_failure", "_feed", "_read", "_response", "at_once")

    def __init__(self, response: UpstreamResponse, *, limit: int) -> None:
        self._response, decoder = response, FrameDecoder(limit)
        self._read = aiter(response.chunks()).__anext__
        self._feed, self.at_once = decoder.feed, decoder.at_once
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

    def listen(self, ear: Ear) -> None:
        """Offer what arrives to *ear*, while `next` is waited for; `next` has the rest. What is pulled is not offered.

        It returns whether it has taken it: all, or nothing, and only what is nothing but events (`at_once`).
        """
        self._response.listen(ear)

    def _late(self, exc: StreamTooLong) -> list[Frame]:
        """Return what came before an event that is too long: that fails only after those."""
        self._failure = exc
        if not exc.frames:
            raise exc
        return exc.frames

    def give_back(self, frames: list[Frame]) -> None:
        """Put frames that were read but not used before what comes next."""
        self._back = frames
