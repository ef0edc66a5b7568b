"""Lends the connections of one engine. Whoever is cancelled, and however often, each connection is given back.

A cancellation that arrives while a connection is opened or given back would leave one that nobody closes: the pool no
longer knows it, and `close` cannot find it. So both steps are tasks of their own, and `close` waits for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

_LEAVE_S: Final = 5.0  # as long as a statement may wait for a lock that somebody else holds
_Step = asyncio.Task[object]


class Lending:
    """The connections of *engine*."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._steps: set[_Step] = set()
        self._closed = 0
        """How often `close` was called."""

    @asynccontextmanager
    async def lend(self, engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
        """Open a connection; *engine* is the one of the constructor or made of it by `execution_options`.

        A borrower who is cancelled while the connection is opened does not wait for it. Raises what the driver raises.
        """
        connection, closed = engine.connect(), self._closed
        opening = self._begin(connection.start())
        try:
            await asyncio.shield(opening)
            yield connection
        finally:
            returning = self._begin(self._take_back(connection, opening, closed))
            if opening.done():
                await asyncio.shield(returning)

    async def close(self) -> None:
        """Close every connection: the idle ones now, one that is still out as soon as it is given back."""
        self._closed += 1
        if self._steps:
            await asyncio.wait(tuple(self._steps), timeout=_LEAVE_S)
        await self._engine.dispose()

    async def _take_back(self, connection: AsyncConnection, opening: _Step, closed: int) -> None:
        await asyncio.wait({opening})
        if opening.cancelled() or opening.exception() is not None:
            return
        if closed != self._closed:  # its pool is gone or about to go, and would not be asked for it again
            await connection.invalidate()
        await connection.close()

    def _begin(self, work: Coroutine[object, object, object]) -> _Step:
        step: _Step = asyncio.get_running_loop().create_task(work)
        self._steps.add(step)
        step.add_done_callback(self._steps.discard)
        step.add_done_callback(_looked_at)
        return step


def _looked_at(step: _Step) -> None:
    """What went wrong in a step is told to the borrower; nobody else is left to hear of it."""
    if not step.cancelled():
        step.exception()
