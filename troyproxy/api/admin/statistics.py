"""``/api/stats``: figures over stored requests. What nobody knew is null; a day without requests has zeros."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Final

from troyproxy.accounting.statistics import MOST_LISTED, Breakdown, Window, rate, report
from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.parameters import one_of, whole
from troyproxy.api.admin.resource import AdminRequest, Answer, invalid
from troyproxy.api.admin.usage_schemas import DAYS, STATISTICS
from troyproxy.api.services import Services
from troyproxy.errors import StoreUnavailable
from troyproxy.ports import DailySum

HOUR_S: Final = 3600.0
MOST_HOURS: Final = 720
MOST_DAYS: Final = 3660
MOST_GROUPED_DAYS: Final = 366
HOURS: Final = whole("hours", "How far back.", 1, MOST_HOURS).otherwise(24)
DAYS_BACK: Final = whole(
    "days", f"How many days; at most {MOST_GROUPED_DAYS} with `group_by`.", 1, MOST_DAYS
).otherwise(30)
GROUP_BY: Final = one_of("group_by", "What to tell each day apart by.", ("provider", "model", "key")).optional()


class Statistics:
    """The handlers."""

    def __init__(self, services: Services) -> None:
        self._store, self._clock = services.store, services.clock

    def operations(self) -> list[Operation]:
        """Return what can be looked at."""
        return [
            Operation(
                "GET",
                "/api/stats",
                self.window,
                "statistics",
                "Totals, rates and percentiles of the last hours.",
                {200: STATISTICS},
                query=(HOURS,),
                fails=(StoreUnavailable,),
            ),
            Operation(
                "GET",
                "/api/stats/daily",
                self.daily,
                "statistics",
                "Sums by UTC day, oldest first, today included.",
                {200: DAYS},
                query=(DAYS_BACK, GROUP_BY),
                fails=(StoreUnavailable,),
            ),
        ]

    async def window(self, request: AdminRequest) -> Answer:
        """``GET /api/stats?hours=24``: totals, rates and percentiles of the last hours."""
        hours, now = request.value(HOURS), self._clock.now()
        window = await self._store.statistics.window(now - hours * HOUR_S)
        # Thousands of sums and times are put together: not on the event loop.
        return Answer(await asyncio.to_thread(_as_json, window, hours, now))

    async def daily(self, request: AdminRequest) -> Answer:
        """``GET /api/stats/daily?days=30&group_by=``: by UTC day, oldest first, today included."""
        days, group_by = request.value(DAYS_BACK), request.value(GROUP_BY)
        if group_by is not None and days > MOST_GROUPED_DAYS:
            raise invalid("days", f"must be at most {MOST_GROUPED_DAYS} with group_by")
        wanted = _last_days(self._clock.now(), days)
        totals = {each.day: each for each in await self._store.statistics.daily(wanted[0], wanted[-1])}
        data = [_sums(totals.get(day, DailySum(day=day))) for day in wanted]
        if group_by is not None:
            grouped = await self._store.statistics.daily_by(group_by, wanted[0], wanted[-1])
            data = _with_groups(data, grouped)
        return Answer({"days": days, "group_by": group_by, "data": data})


def _last_days(now: float, count: int) -> list[str]:
    today = datetime.fromtimestamp(now, UTC).date()
    return [(today - timedelta(days=back)).isoformat() for back in range(count - 1, -1, -1)]


def _sums(sums: DailySum) -> dict[str, object]:
    values = asdict(sums)
    del values["group"], values["name"]
    return {
        **values,
        "success_rate": rate(sums.succeeded, sums.failed),
        "mean_duration_ms": sums.duration_ms / sums.requests if sums.requests else None,
    }


def _with_groups(data: Sequence[dict[str, object]], grouped: Sequence[DailySum]) -> list[dict[str, object]]:
    groups: defaultdict[object, list[dict[str, object]]] = defaultdict(list)
    for each in grouped:
        sums = {name: value for name, value in _sums(each).items() if name != "day"}
        groups[each.day].append({"group": each.group, "name": each.name, **sums})
    return [{**day, "groups": groups[day["day"]]} for day in data]


def _as_json(window: Window, hours: int, now: float) -> dict[str, object]:
    found = report(window)
    timed = len(window.timings)
    return {
        "hours": hours,
        "since": window.since,
        "until": now,
        "complete": window.complete,
        "timed": {"requests": timed, "sampled": timed < found.totals.requests},
        "totals": asdict(found.totals),
        **{f"by_{name}": _entries(breakdown) for name, breakdown in found.by.items()},
        "leaks": [each._asdict() for each in window.leaks[:MOST_LISTED]],
    }


def _entries(breakdown: Breakdown) -> list[dict[str, object]]:
    return [{**names, **asdict(figures)} for names, figures in breakdown]
