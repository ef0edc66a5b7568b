"""Starts and stops what the gateway owns, in order, once; whatever fails on the way is undone.

Start: store, snapshot, health state, background work. Stop: background work, upstream pools, store (queues drain).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final

from troyproxy.errors import StoreUnavailable
from troyproxy.ports import Store, Upstream
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.snapshots import SnapshotKeeper

LOGGER: Final = logging.getLogger("troyproxy")

UNREAD: Final = -1
"""The revision of a snapshot made without the database: the first poll that succeeds replaces it."""

Background = Callable[[], Awaitable[None]]


class Life:
    """The gateway's resources between start and stop."""

    def __init__(
        self,
        *,
        store: Store,
        snapshots: SnapshotKeeper,
        health: HealthKeeper,
        upstream: Upstream,
        background: Sequence[Background],
    ) -> None:
        self._store, self._snapshots, self._health, self._upstream = store, snapshots, health, upstream
        self._background = tuple(background)
        self._turn = asyncio.Lock()
        self._stack: AsyncExitStack | None = None
        self.stopping = False

    @property
    def started(self) -> bool:
        """Whether the gateway can serve."""
        return self._stack is not None

    async def start(self) -> None:
        """Start once; later calls return at once. Raises ConfigError."""
        async with self._turn:
            if self._stack is not None:
                return
            async with AsyncExitStack() as stack:
                stack.push_async_callback(self._store.stop)
                await self._store.start()
                stack.push_async_callback(self._upstream.aclose)
                await self._snapshots.reload(await self._revision())
                await self._restore()
                tasks = [asyncio.get_running_loop().create_task(_run(work)) for work in self._background]
                stack.push_async_callback(_end, tasks)
                self._stack = stack.pop_all()
            for warning in self._snapshots.current.warnings:
                LOGGER.warning("%s", warning)

    async def _revision(self) -> int:
        try:
            return await self._store.control.revision()
        except StoreUnavailable:
            return UNREAD

    async def _restore(self) -> None:
        try:
            await self._health.restore()
        except StoreUnavailable as exc:
            LOGGER.warning("cooldowns and circuits of the last run cannot be read: %s", exc)

    async def stop(self) -> None:
        """Stop once."""
        self.stopping = True
        async with self._turn:
            stack, self._stack = self._stack, None
            if stack is not None:
                await stack.aclose()


async def _run(work: Background) -> None:
    await work()


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel and await background *tasks*; one that had died of a bug says so here."""
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception):
            LOGGER.error("background work had failed", exc_info=outcome)
