"""Brings back at the start what was measured before: from the attempts that are stored with usage rows.

Speed and luck of the last 24 hours, and what accounts with a ``quota`` of their own have used of it, are taken from the
newest rows. What a quota's window holds beyond those is known by sums of what the account served, a lower bound.
A database that cannot be read stops no start: then everything is as yet unknown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Final

from troyproxy.accounting.consumption import PERIODS, window_of
from troyproxy.accounting.finished import Finished, finished_of
from troyproxy.accounting.past import AccountSum, Past
from troyproxy.accounting.track import DAY_S
from troyproxy.catalog.models import UNKNOWN
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import StoreUnavailable
from troyproxy.ports import Clock, RequestRepository
from troyproxy.proxy.measuring import Measuring

LOGGER: Final = logging.getLogger("troyproxy")
ROWS: Final = 20_000
"""Usage rows that are read; the newest."""
PATIENCE_S: Final = 5.0
"""How long a start waits for them."""


class Recall:
    """Fills a `Measuring` before the first request."""

    def __init__(
        self,
        measuring: Measuring,
        requests: RequestRepository,
        snapshot: Callable[[], Snapshot],
        clock: Clock,
        *,
        rows: int = ROWS,
    ) -> None:
        self._measuring, self._requests, self._snapshot, self._clock = measuring, requests, snapshot, clock
        self._rows = rows

    async def bring(self) -> None:
        """Read, and put it in place of what is there. Never raises but a cancellation."""
        now = self._clock.now()
        begins = {period: window_of(period, now)[0] for period in self._periods()}
        try:
            async with asyncio.timeout(PATIENCE_S):
                past = await self._requests.attempts_since(min([now - DAY_S, *begins.values()]), limit=self._rows)
                sums = {
                    period: await self._requests.served_between(begin, past.since)
                    for period, begin in begins.items()
                    if begin < past.since
                }
        except (StoreUnavailable, TimeoutError):
            LOGGER.warning("what was measured before the start cannot be read: strategies learn it anew")
            return
        self._take(past, now)
        for period, found in sums.items():
            self._add(period, now, found)

    def _take(self, past: Past, now: float) -> None:
        finished = list(self._finished(past))
        self._measuring.statistics.begin_anew(each for each in finished if each.at > now - DAY_S)
        self._measuring.quotas.begin_anew(finished)

    def _add(self, period: str, now: float, found: list[AccountSum]) -> None:
        for each in found:
            self._measuring.quotas.add_sum(period, now, each)

    def _finished(self, past: Past) -> Iterator[Finished]:
        providers = self._snapshot().providers
        for record in past.attempts:
            provider = providers.get(record.provider)
            facts = UNKNOWN if provider is None else provider.model(record.model)
            yield finished_of(record, facts.price)

    def _periods(self) -> list[str]:
        """Return the periods of all quotas that are configured."""
        accounts = (account for provider in self._snapshot().providers.values() for account in provider.accounts)
        given = {str(account.quota["per"]) for account in accounts if account.quota}
        return [period for period in PERIODS if period in given]
