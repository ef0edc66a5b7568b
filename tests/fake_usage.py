"""Fakes of what reads usage rows back; the other fakes of the database are in `fake_store`."""

from __future__ import annotations

from dataclasses import replace

from tests.fakes import FakeUsageSink
from troyproxy.accounting.pages import Page, Position, Wanted, merged, position
from troyproxy.accounting.past import AccountSum, Past
from troyproxy.accounting.records import UsageRow
from troyproxy.accounting.statistics import Window
from troyproxy.errors import StoreUnavailable
from troyproxy.ports import DailySum


class FakeRequests:
    """Usage rows, read back from a sink."""

    def __init__(self, sink: FakeUsageSink) -> None:
        self._sink = sink
        self.down = False
        """The attempts cannot be read."""

    async def find(self, request_id: str) -> UsageRow | None:
        return next((row for row in self._sink.rows if row.request_id == request_id), None)

    async def recent(self, *, limit: int = 50) -> list[UsageRow]:
        return self._sink.rows[: -limit - 1 : -1]

    async def page(self, wanted: Wanted, *, before: Position | None = None, limit: int = 50) -> Page:
        rows = [row for row in self._sink.rows if wanted.takes(row)]
        return merged(Page((), None), rows, before=before, limit=limit)

    async def following(self, after: Position, *, limit: int = 500) -> list[UsageRow]:
        return sorted((row for row in self._sink.rows if position(row) > after), key=position)[:limit]

    async def attempts_since(self, at: float, *, limit: int) -> Past:
        if self.down:
            raise StoreUnavailable("down")
        rows = sorted((row for row in self._sink.rows if row.at >= at), key=lambda row: row.at)[-limit:]
        since = at if len(rows) < limit else rows[0].at
        return Past(since, tuple(attempt for row in rows for attempt in row.attempts))

    async def served_between(self, since: float, until: float) -> list[AccountSum]:
        sums: dict[tuple[str, str], AccountSum] = {}
        for row in self._sink.rows:
            if since <= row.at < until and row.provider is not None and row.account is not None:
                key, tokens = (row.provider, row.account), 0 if row.usage is None else row.usage.total
                old = sums.get(key, AccountSum(*key))
                usd = old.usd + (row.cost_usd or 0.0)
                sums[key] = replace(old, requests=old.requests + 1, tokens=old.tokens + tokens, usd=usd)
        return list(sums.values())


class FakeStatistics:
    """Sums that a test sets."""

    def __init__(self) -> None:
        self.held = Window(0.0, True, (), ())
        self.days: list[DailySum] = []

    async def window(self, since: float) -> Window:
        return replace(self.held, since=since)

    async def daily(self, first: str, last: str) -> list[DailySum]:
        return [each for each in self.days if each.group is None and first <= each.day <= last]

    async def daily_by(self, group_by: str, first: str, last: str) -> list[DailySum]:
        assert group_by in {"provider", "model", "key"}
        return [each for each in self.days if each.group is not None and first <= each.day <= last]
