"""The control row and its events: how one process tells all others to reload, clear or forget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from sqlalchemy import func, insert, select

from troyproxy.ports import Clock, ControlEvent
from troyproxy.store.database import Database, bump
from troyproxy.store.encoding import plain
from troyproxy.store.tables import CONTROL_EVENTS

_REVISION: Final = "SELECT revision FROM control"


class SqlControl:
    """`ports.Control`, and the events that go with it. Every method raises StoreUnavailable."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def revision(self) -> int:
        """Return the revision; another one than last time means: load the configuration again."""
        return cast("int", await self._database.value(_REVISION))

    async def bump(self) -> int:
        """Raise the revision by one and return it."""
        async with self._database.write() as connection:
            return await bump(connection)

    async def publish(self, kind: str, payload: Mapping[str, object]) -> int:
        """Store an event for every process, bump the revision in the same transaction, and return the revision."""
        row = {"at": self._clock.now(), "kind": kind, "payload": plain(payload)}
        async with self._database.write() as connection:
            # The control row first: it makes publishers take turns, so that numbers are committed in their order.
            revision = await bump(connection)
            await connection.execute(insert(CONTROL_EVENTS), row)
        return revision

    async def newest(self, before: float) -> int:
        """Return the id of the newest event from before a moment (unix seconds), 0 when there is none."""
        wanted = select(func.max(CONTROL_EVENTS.c.id)).where(CONTROL_EVENTS.c.at < before)
        async with self._database.read() as connection:
            found = (await connection.execute(wanted)).scalar_one()
        return 0 if found is None else int(found)

    async def since(self, event_id: int, *, limit: int = 1000) -> list[ControlEvent]:
        """Return the events behind *event_id*, oldest first."""
        wanted = select(CONTROL_EVENTS).where(CONTROL_EVENTS.c.id > event_id).order_by(CONTROL_EVENTS.c.id)
        async with self._database.read() as connection:
            rows = (await connection.execute(wanted.limit(limit))).all()
        return [ControlEvent(row.id, row.at, row.kind, row.payload) for row in rows]
