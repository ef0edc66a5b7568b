"""What keys have spent and accounts were asked, from the daily sums that the writer keeps with the rows. Only reads."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import func, select

from troyproxy.accounting.quota_board import DayUse
from troyproxy.store.database import Database
from troyproxy.store.quota_daily import day_use, used_on
from troyproxy.store.tables import USAGE_DAILY


class SqlUsageSums:
    """`ports.UsageSums`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def spent_since(self, day: str) -> Mapping[str, float]:
        """Return key id → USD since *day*, for keys that spent anything. Raises StoreUnavailable."""
        table = USAGE_DAILY.c
        spent = func.sum(table.cost_usd)
        sums = (
            select(table.key_id, spent)
            .where(table.day >= day, table.key_id != "", table.cost_usd > 0)
            .group_by(table.key_id)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(sums)).all()
        return {key_id: float(usd) for key_id, usd in rows}

    async def used_on(self, day: str) -> list[DayUse]:
        """Return what the upstream of each account answered on *day*. Raises StoreUnavailable."""
        async with self._database.read() as connection:
            rows = (await connection.execute(used_on(day))).mappings().all()
        return [day_use(dict(row)) for row in rows]
