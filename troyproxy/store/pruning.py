"""Deletes what is past its time: events behind their longest effect, usage rows after their days. Daily sums stay.

A run is a bounded number of small portions, each a transaction of its own; the writer does one between two batches, so
that no row waits long for a lock. What a run leaves behind is the next one's, and that comes soon. Several processes
may prune one database at once: they skip what another is at.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Delete, Table, delete, select

from troyproxy.ports import Clock
from troyproxy.store.database import Database
from troyproxy.store.tables import CONTROL_EVENTS, STATE_EVENTS, USAGE_ROWS

DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """How long rows are kept."""

    events_s: float = 5400.0
    """Must cover the longest effect of an event: a retry hint's 30 minutes and the hour its level is remembered."""
    usage_days: int = 90
    """0 = for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruningPace:
    """How much is deleted at once, and how often. Seconds are the clock's."""

    every_s: float = 60.0
    again_s: float = 1.0
    """After a run that did not get to the end."""
    rows: int = 500
    """Of one portion: some 20 ms of SQLite's write lock."""
    portions: int = 20
    """Of one run."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long the rows of one table are kept."""

    table: Table
    identity: ColumnElement[object]
    keep_s: float


def retentions(keep: Keep) -> tuple[Retention, ...]:
    """Return what is pruned, table by table."""
    usage = (Retention(USAGE_ROWS, USAGE_ROWS.c.request_id, keep.usage_days * DAY_S),) if keep.usage_days else ()
    return (
        Retention(STATE_EVENTS, STATE_EVENTS.c.id, keep.events_s),
        Retention(CONTROL_EVENTS, CONTROL_EVENTS.c.id, keep.events_s),
        *usage,
    )


class Pruner:
    """One process's broom. `step` is called again and again and does at most one portion."""

    def __init__(self, database: Database, keep: Keep, *, clock: Clock, pace: PruningPace) -> None:
        self._database = database
        self._kept = retentions(keep)
        self._clock = clock
        self._pace = pace
        self._due_at = clock.now() + self._pace.every_s
        self._left = 0
        self._todo: deque[Retention] = deque()

    @property
    def busy(self) -> bool:
        """Whether a run is under way."""
        return self._left > 0

    async def step(self) -> None:
        """Delete one portion if a run is due or under way. Raises StoreUnavailable; the next step tries again."""
        now = self._clock.now()
        if not self.busy:
            if now < self._due_at:
                return
            self._left, self._todo = self._pace.portions, deque(self._kept)
        kept = self._todo[0]
        async with self._database.write() as connection:
            done = await connection.execute(oldest(kept, before=now - kept.keep_s, limit=self._pace.rows))
        self._left -= 1
        if done.rowcount < self._pace.rows:
            self._todo.popleft()
        self._end_if_done(now)

    def _end_if_done(self, now: float) -> None:
        if not self._todo:
            self._left, self._due_at = 0, now + self._pace.every_s
        elif not self._left:
            self._due_at = now + self._pace.again_s


def oldest(kept: Retention, *, before: float, limit: int) -> Delete:
    """Return the statement that deletes the oldest rows from before an instant, at most *limit*."""
    at = kept.table.c.at
    chosen = select(kept.identity).where(at < before).order_by(at).limit(limit)
    # Without the lock two instances could wait for each other's rows (PostgreSQL; SQLite has one writer anyway).
    return delete(kept.table).where(kept.identity.in_(chosen.with_for_update(skip_locked=True)))
