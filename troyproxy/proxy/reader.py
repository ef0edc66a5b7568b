"""Pulls an upstream's body: as batches of SSE frames, or whole under a cap."""

from __future__ import annotations

from collections.abc import AsyncIterator

from troyproxy.ports import UpstreamResponse
from troyproxy.wire.sse import Frame, FrameDecoder


class FrameReader:
    """Whole frames of one stream, as they arrive. A cancelled read may be followed by a close only."""

    def __init__(self, response: UpstreamResponse, *, limit: int) -> None:
        self._chunks: AsyncIterator[bytes] = response.chunks()
        self._decoder = FrameDecoder(limit)
        self._ended = False
        self._back: list[Frame] = []

    async def next(self) -> list[Frame]:
        """Return the next frames, at least one; an empty list at the end. Raises UpstreamFailed, StreamTooLong."""
        if self._back:
            frames, self._back = self._back, []
            return frames
        while not self._ended:
            chunk = await anext(self._chunks, None)
            self._ended = chunk is None
            if frames := self._decoder.feed(chunk or b"", last=self._ended):
                return frames
        return []

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
