"""A slot for one chunk between a producer and a consumer: the producer waits until the consumer has taken it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from troyproxy.ports import UpstreamFailed


class Handoff:
    """Chunks, then an end (clean or failed). After the end nothing waits: what is put is dropped."""

    def __init__(self) -> None:
        self._chunk: bytes | None = None
        self._failure: UpstreamFailed | None = None
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self.ended = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def put(self, chunk: bytes) -> None:
        """Hand *chunk* over as soon as the one before it was taken."""
        while self._chunk is not None and not self.ended:
            await self._writable.wait()
        if self.ended:
            return
        self._chunk = chunk
        self._writable.clear()
        self._readable.set()

    async def __anext__(self) -> bytes:
        while self._chunk is None and not self.ended:
            await self._readable.wait()
        if self._chunk is None:
            raise self._failure or StopAsyncIteration
        chunk, self._chunk = self._chunk, None
        self._writable.set()
        if not self.ended:
            self._readable.clear()
        return chunk

    def end(self, failure: UpstreamFailed | None = None) -> None:
        """Let the consumer see the end behind what was put; only the first end counts."""
        if not self.ended:
            self._end(failure)

    def abandon(self, failure: UpstreamFailed) -> None:
        """Drop what was put and fail every later read: the consumer is gone."""
        self._chunk = None
        self._end(failure)

    def _end(self, failure: UpstreamFailed | None) -> None:
        self.ended, self._failure = True, failure
        self._readable.set()
        self._writable.set()
