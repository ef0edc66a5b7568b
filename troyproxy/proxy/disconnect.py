"""Ends the work when the client leaves, before its last byte and also while nothing is sent.

The only reliable sign is `http.disconnect` on `receive`, which a task must wait for: `Disconnect`. Our own server tells
it without one: `HangUp`.
"""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

from troyproxy.proxy.answers import Peer, Receive
from troyproxy.proxy.client import Client

LOGGER: Final = logging.getLogger("troyproxy")


Source = TypeVar("Source")


class _Watch(Generic[Source]):
    """Cancels the client's task when it leaves, and swallows that cancellation at the end.

    `gone` tells afterwards. A disconnect after the whole answer went out is none; somebody else's cancellation passes
    through untouched, also when both come at once.
    """

    __slots__ = ("_cancelling", "_client", "_closed", "_source", "_task", "gone")

    def __init__(self, source: Source, client: Client) -> None:
        self._source, self._client, self._task = source, client, client.alarm.task
        self._cancelling = self._task.cancelling()
        self._closed = False
        self.gone = False

    def _left(self) -> None:
        if not (self._closed or self._client.finished):
            self.gone = True
            self._task.cancel()

    def _swallows(self, kind: type[BaseException] | None) -> bool:
        ours = self._task.uncancel() <= self._cancelling
        return ours and kind is not None and issubclass(kind, asyncio.CancelledError)


class HangUp(_Watch[Peer]):
    """Where our own server is in front: it tells."""

    __slots__ = ()

    def __enter__(self) -> Self:
        self._source.watch(self._left)
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, _: TracebackType | None) -> bool:
        self._closed = True
        self._source.unwatch()
        return self.gone and self._swallows(kind)


class Disconnect(_Watch[Receive]):
    """Behind any other server: a task listens at `receive`."""

    __slots__ = ("_watcher",)

    async def __aenter__(self) -> Self:
        self._watcher = self._client.alarm.bell.loop.create_task(
            self._watch()
        )  # kept here, ended and awaited in __aexit__
        return self

    async def _watch(self) -> None:
        message = await self._source()
        while message["type"] != "http.disconnect":
            await asyncio.sleep(0)  # a host that repeats itself without waiting must not stop the loop
            message = await self._source()
        self._left()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, _: TracebackType | None
    ) -> bool:
        self._closed = True
        self._watcher.cancel()
        try:
            await asyncio.wait({self._watcher})
        finally:
            swallowed = self.gone and self._swallows(kind)
            watcher = self._watcher
            del self._watcher  # a circle through its traceback would keep the request for the collector, body and all
        if not watcher.cancelled() and (error := watcher.exception()) is not None:
            LOGGER.warning("the client could not be watched: %s", type(error).__name__)
        return swallowed
