"""What every key has spent today and this month, read from the database now and then. No request waits for it.

Workers that share no Redis learn of each other's spending here; after a start so does everybody.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from troyproxy.accounting.limits import Account, day_of, month_of
from troyproxy.errors import StoreUnavailable
from troyproxy.ports import Clock, UsageSums

LOGGER: Final = logging.getLogger("troyproxy.limits")
EVERY_S: Final = 10.0
PATIENCE_S: Final = 5.0
"""How long one reading may take; a start waits for the first."""


@dataclass(frozen=True, slots=True)
class Sums:
    """One reading: the day and the month it is about, and key id → USD for each."""

    at: float = 0.0
    day: str = ""
    month: str = ""
    by_day: Mapping[str, float] = field(default_factory=dict)
    by_month: Mapping[str, float] = field(default_factory=dict)

    def of(self, key_id: str) -> Account:
        """Return what is spent with a key; full levels."""
        return Account(
            at=self.at,
            day=self.day,
            day_usd=self.by_day.get(key_id, 0.0),
            month=self.month,
            month_usd=self.by_month.get(key_id, 0.0),
        )


class Spending:
    """Keeps the latest reading."""

    def __init__(self, sums: UsageSums, clock: Clock) -> None:
        self._sums, self._clock = sums, clock
        self._failing = False
        self.latest = Sums()

    async def read(self) -> None:
        """Read once. A database that cannot be read leaves the last reading as it is; that is said once."""
        now = self._clock.now()
        day, month = day_of(now), month_of(now)
        try:
            async with asyncio.timeout(PATIENCE_S):
                by_day = await self._sums.spent_since(day)
                by_month = await self._sums.spent_since(f"{month}-01")
        except (StoreUnavailable, TimeoutError):
            if not self._failing:
                LOGGER.warning("what keys have spent cannot be read: budgets go by what this process has seen")
            self._failing = True
        else:
            self._failing = False
            self.latest = Sums(now, day, month, by_day, by_month)

    async def follow(self) -> None:
        """Read until cancelled."""
        while True:
            await self._clock.sleep(EVERY_S)
            await self.read()
