"""`SqlStore`: the database as one value, behind `ports.Store`. It wires; the work is in the modules beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from troyproxy.catalog.secret import Secret
from troyproxy.errors import ConfigError, StoreUnavailable
from troyproxy.ports import Clock
from troyproxy.store import migrations
from troyproxy.store.combos import SqlCombos
from troyproxy.store.connection_rows import ConnectionRows
from troyproxy.store.connections import SqlConnections
from troyproxy.store.control import SqlControl
from troyproxy.store.database import Database, is_busy, is_sqlite, parse_url
from troyproxy.store.journal import SqlEventLog
from troyproxy.store.keys import SqlKeys
from troyproxy.store.models import SqlModels
from troyproxy.store.providers import SqlProviders
from troyproxy.store.pruning import Keep, Pruner
from troyproxy.store.queue import BoundedQueue
from troyproxy.store.requests import SqlRequests, UsageJournal
from troyproxy.store.secrets import SecretBox
from troyproxy.store.statistics import SqlStatistics
from troyproxy.store.tables import STATE_EVENTS, USAGE_ROWS
from troyproxy.store.usage_sums import SqlUsageSums
from troyproxy.store.writer import Pace, Writer

QUEUE_BOUND: Final = 10_000
"""Rows that wait for the writer, in each of the two queues."""
KEEP: Final = Keep()


class SqlStore:
    """SQLite or PostgreSQL.

    *source* names this instance in the journal; it must be its own, and the same after a restart, or a replay takes the
    instance's own counts for another's. *keep* says how long events and usage rows stay.
    """

    def __init__(
        self,
        url: str,
        *,
        secret_key: Secret | None,
        clock: Clock,
        source: str = "local",
        keep: Keep = KEEP,
        pace: Pace | None = None,
    ) -> None:
        """Raises ConfigError for a bad URL or key; connects to nothing yet."""
        self._url = url
        pace = pace or Pace()
        database = Database(parse_url(url))
        self._database = database
        self._event_queue = BoundedQueue(QUEUE_BOUND)
        self._usage_queue = BoundedQueue(QUEUE_BOUND)
        self._writer = Writer(
            database,
            {STATE_EVENTS: self._event_queue, USAGE_ROWS: self._usage_queue},
            prepare=self._prepare,
            pruner=Pruner(database, keep, clock=clock, pace=pace.pruning),
            pace=pace,
        )
        self.combos = SqlCombos(database, clock)
        rows = ConnectionRows(None if secret_key is None else SecretBox(secret_key))
        self.connections = SqlConnections(database, clock, rows)
        self.providers = SqlProviders(database, clock, rows)
        self.keys = SqlKeys(database, clock)
        self.models = SqlModels(database)
        self.requests = SqlRequests(database)
        self.statistics = SqlStatistics(database)
        self.sums = SqlUsageSums(database)
        self.control = SqlControl(database, clock)
        self.events = SqlEventLog(
            database, self._event_queue, self._writer.wake, clock=clock, source=source, keep_s=keep.events_s
        )
        self.usage = UsageJournal(self._usage_queue, self._writer.wake)

    @property
    def up(self) -> bool:
        """Whether the last database operation of the writer succeeded; an idle writer asks every few seconds."""
        return self._writer.up

    @property
    def queue_depths(self) -> Mapping[str, int]:
        """Rows not yet written, per queue."""
        return {"events": len(self._event_queue), "usage": len(self._usage_queue)}

    @property
    def dropped(self) -> Mapping[str, int]:
        """Rows lost at the bound, refused by the database, or left at the stop, per queue."""
        return {"events": self._event_queue.dropped, "usage": self._usage_queue.dropped}

    async def start(self) -> None:
        """Migrate a SQLite file, or see that another database is migrated, and start the writer.

        Raises ConfigError when the schema does not fit. A database that cannot be reached is logged and tried again.
        """
        await self._writer.start()

    async def stop(self) -> None:
        """Drain the queues, stop the writer, close the engine. Safe without, or after a failed, `start`."""
        await self._writer.stop()
        await self._database.close()

    async def _prepare(self) -> None:
        if is_sqlite(self._database.url):
            await self._migrate_file()
            return
        async with self._database.read() as connection:
            found = await connection.run_sync(migrations.revision_of)
        migrations.require_head(found)

    async def _migrate_file(self) -> None:
        try:
            await migrations.upgrade(self._url)
        except StoreUnavailable as exc:
            if is_busy(exc):
                raise  # somebody holds a lock on it, who will let go
            # Waiting would not help: a file that cannot be opened at the start needs somebody's hand.
            raise ConfigError(
                f"cannot open or migrate the database file {self._database.url.database!r}: "
                "check that it is a database, and that it and its folder can be written"
            ) from exc
