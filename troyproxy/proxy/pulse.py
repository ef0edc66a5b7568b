"""Keeps a quiet stream alive: comments while the upstream is silent, and, where asked for, an early head.

The early head (state OPEN) is for hops that need bytes soon: no content goes out with it, so the walk may still go
on, but a final failure can then only be told in-band. A stream that speaks costs a timer, no task.
"""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import Final

from troyproxy.ports import Headers
from troyproxy.proxy.client import SENDING, Client, ClientGone
from troyproxy.wire.sse import Frame, encode_comment

LOGGER: Final = logging.getLogger("troyproxy")
OK: Final = 200

_KEEPALIVE: Final = Frame(raw=encode_comment("keep-alive"), data=None)


class Pulse:
    """Beats beside the work inside ``async with``; *open_after_s* and *every_s* of 0 are off.

    *headers* are those of the early head.
    """

    def __init__(self, client: Client, headers: Headers, *, open_after_s: float, every_s: float) -> None:
        self._client, self._headers = client, headers
        self._open_after_s, self._every_s = open_after_s, every_s
        self._loop = client.alarm.bell.loop
        self._timer: asyncio.TimerHandle | None = None
        self._beat: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        if self._open_after_s:
            self._timer = self._loop.call_later(self._open_after_s, self._open)
        else:
            self._wait(self._every_s)

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._every_s = 0.0
        if self._beat is not None:
            self._beat.cancel()
            await asyncio.wait({self._beat})

    def _wait(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self._due) if self._every_s else None

    def _open(self) -> None:
        if self._client.started:
            self._wait(self._every_s)
        else:
            self._say()

    def _due(self) -> None:
        client = self._client
        if client.finished:
            return
        speaks = not client.started or client.sent_at == SENDING
        left_s = self._every_s if speaks else self._every_s - (self._loop.time() - client.sent_at)
        if left_s > 0:
            self._wait(left_s)
        else:
            self._say()

    def _say(self) -> None:
        self._beat = self._client.beside(OK, self._headers, _KEEPALIVE)
        self._beat.add_done_callback(self._said)

    def _said(self, beat: asyncio.Task[None]) -> None:
        self._beat = None
        error = None if beat.cancelled() else beat.exception()
        if error is None:
            self._wait(self._every_s)
        elif not isinstance(error, ClientGone):  # whoever sends next finds out that the client has gone
            LOGGER.error("the keep-alive had failed", exc_info=error)
