"""Pulls an upstream's body: as batches of SSE frames, or whole under a cap."""

from __future__ import annotations

from collections.abc import AsyncIterator

from troyproxy.ports import UpstreamResponse
from troyproxy.wire.sse import Frame, FrameDecoder, StreamTooLong


class FrameReader:
    """Whole frames of one stream, as they arrive. A cancelled read may be followed by a close only."""

    def __init__(self, response: UpstreamResponse, *, limit: int) -> None:
        self._chunks: AsyncIterator[bytes] = response.chunks()
        self._decoder = FrameDecoder(limit)
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
            chunk = await anext(self._chunks, None)
            self._ended = chunk is None
            if frames := self._cut(chunk or b""):
                return frames
        return []

    def _cut(self, chunk: bytes) -> list[Frame]:
        """Return the frames that *chunk* completes; an event that is too long fails only after those before it."""
        try:
            return self._decoder.feed(chunk, last=self._ended)
        except StreamTooLong as exc:
            self._failure = exc
            if not exc.frames:
                raise
            return exc.frames

    def give_back(self, frames: list[Frame]) -> None:
        """Put frames that were read but not used before what comes next."""
        self._back = frames


async def read_whole(response: UpstreamResponse, *, limit: int, into: bytearray) -> bool:
    """Read the body into *into* (which keeps what came when this is cancelled); False when it is over *limit*."""
    async for chunk in response.chunks():
        into += chunk
        if len(into) > limit:
            return False
    return True
