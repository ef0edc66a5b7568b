"""Starts and stops what the gateway owns, in order, once; whatever fails on the way is undone.

Start: store, snapshot, health state (the journal's, then the other instances'), what must be known before the first
request, background work.
Stop: background work, the way to other instances, upstream pools, store (queues drain).
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
from troyproxy.proxy.mirroring import Mirroring
from troyproxy.proxy.snapshots import SnapshotKeeper

LOGGER: Final = logging.getLogger("troyproxy")

UNREAD: Final = -1
"""The revision of a snapshot made without the database: the first poll that succeeds replaces it."""

Background = Callable[[], Awaitable[None]]


class Life:
    """The gateway's resources between start and stop."""

    def __init__(  # noqa: PLR0913 -- everything that starts and stops, by keyword
        self,
        *,
        store: Store,
        snapshots: SnapshotKeeper,
        health: HealthKeeper,
        upstream: Upstream,
        background: Sequence[Background],
        mirroring: Mirroring | None = None,
        first: Sequence[Background] = (),
    ) -> None:
        self._store, self._snapshots, self._health, self._upstream = store, snapshots, health, upstream
        self._background, self._mirroring = tuple(background), mirroring
        self._first = tuple(first)
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
            self.stopping = False
            async with AsyncExitStack() as stack:
                stack.push_async_callback(self._store.stop)
                await self._store.start()
                stack.push_async_callback(self._upstream.aclose)
                await self._configure()
                await self._snapshots.begin()
                await self._restore()
                if self._mirroring is not None:
                    stack.push_async_callback(self._mirroring.leave)
                    await self._mirroring.join()
                for work in self._first:
                    await work()
                tasks = [asyncio.get_running_loop().create_task(_run(work)) for work in self._works()]
                for task in tasks:
                    task.add_done_callback(_told)
                stack.push_async_callback(_end, tasks)
                self._stack = stack.pop_all()
                self.stopping = False
            for warning in self._snapshots.current.warnings:
                LOGGER.warning("%s", warning)

    def _works(self) -> tuple[Background, ...]:
        shared = () if self._mirroring is None else (self._mirroring.follow,)
        return (*self._background, *shared, self._health.follow)

    async def _configure(self) -> None:
        """Make the first snapshot. At a later start without the database, the last one is good enough."""
        try:
            await self._snapshots.reload(await self._revision())
        except StoreUnavailable as exc:
            LOGGER.warning("the configuration is that of the last run: %s", exc)

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

    def stop_soon(self) -> None:
        """Say that `stop` will follow: ``/readyz`` fails from now on, everything else goes on."""
        self.stopping = True

    async def stop(self) -> None:
        """Stop once."""
        self.stopping = True
        async with self._turn:
            stack, self._stack = self._stack, None
            if stack is not None:
                await stack.aclose()


async def _run(work: Background) -> None:
    await work()


def _told(task: asyncio.Task[None]) -> None:
    """Background work never ends by itself; if it died of a bug, say so now and not at the stop."""
    if not task.cancelled() and (error := task.exception()) is not None:
        LOGGER.error("background work has failed", exc_info=error)


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel and await background *tasks*."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
