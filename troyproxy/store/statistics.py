"""Sums over ``usage_rows`` and ``usage_daily``. The database sums; what is read into memory is bounded."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from sqlalchemy import ColumnElement, Row, Select, and_, func, literal_column, select

from troyproxy.accounting.statistics import Cell, Group, Leaks, Timing, Window
from troyproxy.ports.statistics import DailySum
from troyproxy.store.daily import SUMS
from troyproxy.store.database import Database
from troyproxy.store.tables import USAGE_DAILY, USAGE_ROWS

MOST_ROWS: Final = 100_000
"""Rows that one window sums: with more, it is a shorter window."""
MOST_TIMED: Final = 10_000
"""Rows that percentiles are taken from."""
MOST_GROUPS: Final = 20
"""Groups that daily sums are told apart by."""

_GROUP: Final = tuple(USAGE_ROWS.c[name] for name in Group._fields)
_TOKENS: Final = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
_SUMMED: Final = ("tries", "failovers", *_TOKENS, "cost_usd")
_COUNTS: Final = tuple(name for name in SUMS if name not in {"cost_usd", "duration_ms"})
_DAY: Final = USAGE_DAILY.c.day
# A literal, not a parameter: PostgreSQL would not see that what is selected is what is grouped by.
_SPEC: Final = USAGE_DAILY.c.provider.concat(literal_column("'/'")).concat(USAGE_DAILY.c.model)
_GROUPS: Final[dict[str, tuple[ColumnElement[str], ColumnElement[str]]]] = {
    "provider": (USAGE_DAILY.c.provider, func.max(USAGE_DAILY.c.provider)),
    "model": (_SPEC, func.max(_SPEC)),
    "key": (USAGE_DAILY.c.key_id, func.max(USAGE_DAILY.c.key_name)),
}
"""What a day is told apart by, and what it is called."""
_NONE: Final = frozenset({"", "/"})
"""How the sums write that a request had none of it."""


class SqlStatistics:
    """`ports.Statistics`."""

    def __init__(
        self,
        database: Database,
        *,
        most_rows: int = MOST_ROWS,
        most_timed: int = MOST_TIMED,
        most_groups: int = MOST_GROUPS,
    ) -> None:
        self._database = database
        self._most_rows, self._most_timed, self._most_groups = most_rows, most_timed, most_groups

    async def window(self, since: float) -> Window:
        """Return what was stored since an instant."""
        async with self._database.read() as connection:
            floor = (await connection.execute(floor_of(since, self._most_rows))).scalar_one_or_none()
            begin = since if floor is None else floor
            cells = (await connection.execute(cells_since(begin))).all()
            timings = (await connection.execute(timings_since(begin, self._most_timed))).all()
            leaked = (await connection.execute(leaked_since(begin, self._most_timed))).all()
        window = await asyncio.to_thread(_window, begin, floor is None, cells, timings)
        return replace(window, leaks=_leaks(row.attempts for row in leaked))

    async def daily(self, first: str, last: str) -> list[DailySum]:
        """Return the sums of the days from *first* to *last*, oldest first."""
        wanted = select(_DAY, *_daily_sums()).where(_DAY.between(first, last)).group_by(_DAY).order_by(_DAY)
        async with self._database.read() as connection:
            return [_daily(row, None, None) for row in (await connection.execute(wanted)).all()]

    async def daily_by(self, group_by: str, first: str, last: str) -> list[DailySum]:
        """Return the same by a group, oldest first, and within a day by the group."""
        async with self._database.read() as connection:
            found = await connection.execute(daily_groups(group_by, first, last, self._most_groups))
            rows = found.all()
        return [_daily(row, *((None, None) if row.group in _NONE else (row.group, row.name))) for row in rows]


def floor_of(since: float, most: int) -> Select[float]:
    """Return the query for the instant since which there are *most* rows; it finds nothing when there are fewer."""
    at = USAGE_ROWS.c.at
    return select(at).where(at >= since).order_by(at.desc()).limit(1).offset(most)


def cells_since(begin: float) -> Select[tuple[object, ...]]:
    """Return the query for the sums of every group."""
    summed = (func.sum(USAGE_ROWS.c[name]).label(name) for name in _SUMMED)
    columns = (func.max(USAGE_ROWS.c.key_name).label("key_name"), func.count().label("requests"), *summed)
    return select(*_GROUP, *columns).where(USAGE_ROWS.c.at >= begin).group_by(*_GROUP)


def timings_since(begin: float, most: int) -> Select[tuple[object, ...]]:
    """Return the query for the times of the newest rows."""
    at = USAGE_ROWS.c.at
    times = (USAGE_ROWS.c.duration_ms, USAGE_ROWS.c.first_token_ms)
    return select(*_GROUP, *times).where(at >= begin).order_by(at.desc()).limit(most)


def leaked_since(begin: float, most: int) -> Select[tuple[object, ...]]:
    """Return the query for the attempts of the newest requests with one that wrote its tool call as text."""
    at = USAGE_ROWS.c.at
    return select(USAGE_ROWS.c.attempts).where(at >= begin, USAGE_ROWS.c.leaks > 0).order_by(at.desc()).limit(most)


def daily_groups(group_by: str, first: str, last: str, most: int) -> Select[tuple[object, ...]]:
    """Return the query for daily sums by group, of the *most* groups that had the most requests over all the days."""
    group, name = _GROUPS[group_by]
    days = _DAY.between(first, last)
    largest = (
        select(group.label("group"))
        .where(days)
        .group_by(group)
        .order_by(func.sum(USAGE_DAILY.c.requests).desc(), group)
        .limit(most)
        .subquery()
    )
    return (
        select(_DAY, group.label("group"), name.label("name"), *_daily_sums())
        .join_from(USAGE_DAILY, largest, and_(group == largest.c.group))
        .where(days)
        .group_by(_DAY, group)
        .order_by(_DAY, group)
    )


def _daily_sums() -> list[ColumnElement[object]]:
    return [func.sum(USAGE_DAILY.c[name]).label(name) for name in SUMS]


def _window(
    begin: float,
    complete: bool,  # noqa: FBT001 -- one call
    cells: Sequence[Row[tuple[object, ...]]],
    timings: Sequence[Row[tuple[object, ...]]],
) -> Window:
    """Return the rows as values; thousands of them, so it runs in a thread."""
    times = [Timing(_group(row), row.duration_ms, row.first_token_ms) for row in timings]
    return Window(since=begin, complete=complete, cells=[_cell(row) for row in cells], timings=times)


def _leaks(rows: Iterable[Iterable[Mapping[str, str]]]) -> list[Leaks]:
    """Count what leaked, the most frequent first."""
    leaked = (each for attempts in rows for each in attempts if each.get("leak"))
    found = Counter((each["provider"], each["model"], *each["leak"].partition(";")) for each in leaked)
    counted = (Leaks(at, model, form, action, count) for (at, model, form, _, action), count in found.items())
    return sorted(counted, key=lambda leaks: (-leaks.attempts, leaks))


def _group(row: Row[tuple[object, ...]]) -> Group:
    return Group(row.provider, row.model, row.key_id, row.combo, row.outcome)


def _cell(row: Row[tuple[object, ...]]) -> Cell:
    return Cell(
        group=_group(row),
        key_name=row.key_name,
        requests=row.requests,
        attempts=_whole(row.tries),
        failovers=_whole(row.failovers),
        input_tokens=_whole(row.input_tokens),
        output_tokens=_whole(row.output_tokens),
        cached_tokens=_whole(row.cached_tokens),
        reasoning_tokens=_whole(row.reasoning_tokens),
        cost_usd=row.cost_usd,
    )


def _whole(summed: int | Decimal | None) -> int | None:
    """Return a sum of integers; PostgreSQL sums them to decimals, and spells 20,000 as ``2E+4``."""
    return None if summed is None else int(summed)


def _daily(row: Row[tuple[object, ...]], group: str | None, name: str | None) -> DailySum:
    counts = {column: int(getattr(row, column)) for column in _COUNTS}
    cost, duration = float(row.cost_usd), float(row.duration_ms)
    return DailySum(day=row.day, group=group, name=name, **counts, cost_usd=cost, duration_ms=duration)
