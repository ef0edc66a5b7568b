"""The journal of the health state: events in, and out again at the next start. Who writes the queue is `writer`.

A replay folds its own source whole. From other instances it takes the locks and the circuits that are still open, not
what they counted: their counts are about what they saw, not we.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sqlalchemy import Row, select

from troyproxy.ports import Clock
from troyproxy.resilience.events import (
    CircuitClosed,
    CircuitOpened,
    Cleared,
    Event,
    Failed,
    from_record,
    to_record,
)
from troyproxy.store.database import Database
from troyproxy.store.encoding import plain
from troyproxy.store.queue import BoundedQueue, Columns
from troyproxy.store.tables import STATE_EVENTS

_log = logging.getLogger("troyproxy.store")


class SqlEventLog:
    """`ports.EventLog`. *source* names this instance and must be the same after a restart."""

    def __init__(
        self,
        database: Database,
        queue: BoundedQueue,
        wake: Callable[[], None],
        *,
        clock: Clock,
        source: str,
        keep_s: float,
    ) -> None:
        self._database = database
        self._queue = queue
        self._wake = wake
        self._clock = clock
        self._source = source
        self._keep_s = keep_s

    def append(self, event: Event) -> None:
        """Queue *event*; never waits, never raises."""
        self._queue.append(_columns(event, self._source))
        self._wake()

    async def replay(self) -> Sequence[Event]:
        """Return what can still have an effect, in the order it was written. Raises StoreUnavailable.

        Rows that this version cannot read are skipped, and their number is logged.
        """
        now = self._clock.now()
        rows = select(STATE_EVENTS).where(STATE_EVENTS.c.at > now - self._keep_s).order_by(STATE_EVENTS.c.id)
        async with self._database.read() as connection:
            stored = (await connection.execute(rows)).all()
        read = [(row.source, event) for row in stored if (event := _event(row)) is not None]
        if len(read) < len(stored):
            _log.warning("skipped %d unreadable state events", len(stored) - len(read))
        # A commit whose answer was lost is tried again, so an event may be there twice; no two happen at one instant.
        return list(_relevant(list(dict.fromkeys(read)), self._source))


def _columns(event: Event, source: str) -> Columns:
    record = to_record(event)
    return {
        "at": event.at,
        "version": record["v"],
        "source": source,
        "type": record["type"],
        "payload": plain(record),
    }


def _event(row: Row[tuple[object, ...]]) -> Event | None:
    try:
        return from_record(row.payload)
    except ValueError:
        return None


def _relevant(read: Sequence[tuple[str, Event]], ours: str) -> Iterator[Event]:
    """Yield our own events, and of others' what this module's docstring says."""
    closed = {
        (source, event.provider, event.model): index
        for index, (source, event) in enumerate(read)
        if isinstance(event, CircuitClosed)
    }
    for index, (source, event) in enumerate(read):
        match event:
            case _ if source == ours:
                yield event
            case CircuitOpened() if index > closed.get((source, event.provider, event.model), -1):
                yield event
            case Cleared():
                yield event
            case Failed() if event.cooldown_s is not None:
                yield replace(event, counts=False, level=0)
