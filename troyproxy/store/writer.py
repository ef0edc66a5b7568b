"""The one task that writes usage rows and state events. It outlives the database: what it cannot write yet, it keeps.

    new rows ── linger a moment for company ── one transaction ── one portion of what is too old ── done: up
                                                    │
                                                    ├─ database down: keep the rows, not up, back off, try again
                                                    └─ a row is refused: write each by itself, drop and count that one

Nothing waits for it but `stop`, and that not for ever. The queues are bounded elsewhere (`queue`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Table
from sqlalchemy.exc import IntegrityError

from troyproxy.errors import ConfigError, StoreUnavailable, TroyError, ValidationFailed
from troyproxy.store.batches import inserting
from troyproxy.store.daily import Grouping
from troyproxy.store.database import Database
from troyproxy.store.pruning import Pruner, PruningPace
from troyproxy.store.queue import BoundedQueue, Item

_log = logging.getLogger("troyproxy.store")

_REFUSED: Final = (IntegrityError, ValidationFailed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How the writer moves, in seconds of real time and in rows."""

    linger_s: float = 0.03
    """How long a first row waits for company; with the commit, well inside the promised 50 ms."""
    retry_s: float = 0.1
    """First wait after a failure; doubled up to *retry_max_s*."""
    retry_max_s: float = 5.0
    heartbeat_s: float = 5.0
    """How often an idle writer asks whether the database is there."""
    drain_s: float = 5.0
    batch: int = 500
    pruning: PruningPace = field(default_factory=PruningPace)


class Writer:
    """Owns one task, from `start` to `stop`. *prepare* must succeed once before anything is written."""

    def __init__(
        self,
        database: Database,
        queues: Mapping[Table, BoundedQueue],
        *,
        prepare: Callable[[], Awaitable[None]],
        pruner: Pruner,
        pace: Pace,
    ) -> None:
        self._database = database
        self._queues = queues
        self._prepare = prepare
        self._prepared = False
        self._pruner = pruner
        self._pace = pace
        self._grouping = Grouping()
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._stopping = False
        self._failures = 0
        self._complaint = ""
        self._task: asyncio.Task[None] | None = None
        self.up = False
        """Whether the last database operation succeeded."""

    def wake(self) -> None:
        """Say that there is something to write."""
        self._wake.set()

    async def start(self) -> None:
        """Make one attempt, so that `up` says something, then start the task. Raises ConfigError from *prepare*.

        It may be started again after a stop, on another event loop too: hosts do that in their tests.
        """
        self._wake, self._hurry, self._stopping = asyncio.Event(), asyncio.Event(), False
        try:
            await self._prepare_once()
        except StoreUnavailable as exc:
            self._went_down(exc)
        else:
            self._came_up()
        # The one task of this package: kept here, awaited in `stop`, so neither it nor its exception can get lost.
        self._task = asyncio.get_running_loop().create_task(self._run(), name="troyproxy-store-writer")
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Write what waits, within the drain time, and end the task; what is left then is dropped and counted."""
        task, self._task = self._task, None
        if task is None:
            return
        self._stopping = True
        self._wake.set()
        self._hurry.set()
        await asyncio.wait({task}, timeout=self._pace.drain_s)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        if lost := sum(queue.abandon() for queue in self._queues.values()):
            _log.error("dropped %d rows at the stop: the database did not take them in time", lost)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.up = False
        if not task.cancelled() and (bug := task.exception()) is not None:
            _log.critical("the writer ended by a bug: nothing is stored from now on", exc_info=bug)

    async def _run(self) -> None:
        while True:
            written = await self._turn()
            if self._stopping and written and not self._waiting():
                return
            await self._pause(written=written)

    async def _pause(self, *, written: bool) -> None:
        pace = self._pace
        if not written:
            wait_s = pace.retry_s if self._stopping else min(pace.retry_s * 2**self._failures, pace.retry_max_s)
            self._hurry.clear()
            await _wait(self._hurry, wait_s)
            return
        if not (self._waiting() or self._pruner.busy):
            await _wait(self._wake, pace.heartbeat_s)
        self._wake.clear()
        if not self._stopping:
            await _wait(self._hurry, pace.linger_s)

    def _waiting(self) -> bool:
        return any(len(queue) for queue in self._queues.values())

    async def _turn(self) -> bool:
        """Write one batch, or ask whether the database is there; return whether it was."""
        batches = {table: queue.take(self._pace.batch) for table, queue in self._queues.items()}
        try:
            await self._prepare_once()
            await self._write(batches)
            await self._pruner.step()
        except (StoreUnavailable, ConfigError, ValidationFailed) as exc:
            self._went_down(exc)
            return False
        finally:
            # `_write` empties the batches as it writes; what is still in them waits on, also when we are cancelled.
            for table, batch in batches.items():
                self._queues[table].settle(batch)
        self._came_up()
        return True

    async def _prepare_once(self) -> None:
        if not self._prepared:
            await self._prepare()
            self._prepared = True

    async def _write(self, batches: Mapping[Table, list[Item]]) -> None:
        """Write every batch in one transaction and empty it; with nothing to write, ping."""
        if not any(batches.values()):
            await self._database.ping()
            return
        try:
            await self._database.insert(inserting(batches, self._grouping))
        except _REFUSED:
            await self._write_singly(batches)
        for rows in batches.values():
            rows.clear()

    async def _write_singly(self, batches: Mapping[Table, list[Item]]) -> None:
        for table, rows in batches.items():
            while rows:
                try:
                    await self._database.insert(inserting({table: rows[:1]}, self._grouping))
                except _REFUSED as exc:
                    self._queues[table].dropped += 1
                    _log.error("dropped a row of %s that the database refuses (%s)", table.name, _root(exc))
                del rows[0]

    def _went_down(self, exc: TroyError) -> None:
        if str(exc) != self._complaint:  # once for each kind of trouble, not for each attempt
            self._complaint = str(exc)
            _log.error("%s; retrying, and keeping what waits to be written (%s)", exc, _root(exc))
        self.up = False
        self._failures = min(self._failures + 1, 16)

    def _came_up(self) -> None:
        if self._failures:
            _log.warning("the database is back")
        self._complaint = ""
        self.up = True
        self._failures = 0


def _root(exc: BaseException) -> str:
    """Return the class of the first cause; its text may quote an address with a password."""
    while exc.__cause__ is not None:
        exc = exc.__cause__
    return type(exc).__name__


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
