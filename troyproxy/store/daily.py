"""Daily sums: what the rows of one batch add to ``usage_daily``, and the statement that adds it. Days are UTC.

A sum is a lower bound: tokens nobody reported and costs without a price add nothing. Sums stay when rows are pruned, so
what could grow without end is bounded here: names are cut, and of one day only so many different targets get a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Final

from sqlalchemy import Executable
from sqlalchemy.dialects import postgresql, sqlite

from troyproxy.store.queue import Columns
from troyproxy.store.tables import USAGE_DAILY, USAGE_ROWS

Group = tuple[str, str, str, str]
"""Day, key id, provider and model; "" where a request had none of it."""

KEYS: Final = ("day", "key_id", "provider", "model")
COUNTED: Final = {
    "ok": "succeeded",
    "client_error": "client_errors",
    "upstream_error": "failed",
    "refused": "failed",
    "truncated": "failed",
    "cancelled": "cancelled",
}
"""From outcomes to columns."""
SUMS: Final = tuple(column.name for column in USAGE_DAILY.columns if column.name not in {*KEYS, "key_name"})
_AS_THEY_ARE: Final = tuple(name for name in SUMS if name in USAGE_ROWS.c and name != "attempts")
NAME_CHARS: Final = 150
MODEL_CHARS: Final = 200
"""Together they fit an entry of PostgreSQL's primary key (2,704 bytes) in any script."""
MOST_GROUPS: Final = 10_000
OTHER: Final = "(other)"
"""The model of what is beyond the bound: an upstream that takes any name must not make a row of each."""


def day_of(at: float) -> str:
    """Return the UTC day of *at* (unix seconds), as ``2026-01-31``."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


class Grouping:
    """Which row of the day a request belongs to. Bounded: *most* groups a day and process, then `OTHER`."""

    def __init__(self, most: int = MOST_GROUPS) -> None:
        self._most = most
        self._seen: dict[str, set[Group]] = {}

    def of(self, row: Columns) -> Group:
        """Return the group of *row*, and remember it."""
        day = day_of(float(str(row["at"])))
        key_id, provider = _name(row["key_id"], NAME_CHARS), _name(row["provider"], NAME_CHARS)
        group = (day, key_id, provider, _name(row["model"], MODEL_CHARS))
        seen = self._groups_of(day)
        if group in seen or len(seen) < self._most:
            seen.add(group)
            return group
        return (day, key_id, provider, OTHER)

    def _groups_of(self, day: str) -> set[Group]:
        """Return what was seen of *day*; only two days are remembered: at midnight rows of both are written."""
        if day not in self._seen:
            self._seen[day] = set()
            for old in sorted(self._seen)[:-2]:
                del self._seen[old]
        return self._seen.get(day, set())


def increments(rows: Sequence[Columns], grouping: Grouping) -> list[Columns]:
    """Return what *rows* of ``usage_rows`` add, one entry for each group, in one order everywhere.

    The order matters: two instances that lock the same sums in different orders could wait for each other.
    """
    found: dict[Group, dict[str, float]] = {}
    names: dict[Group, str] = {}
    for row in rows:
        group = grouping.of(row)
        if group not in found:
            found[group] = dict.fromkeys(SUMS, 0)
        _add(found[group], row)
        names[group] = _name(row["key_name"], NAME_CHARS)
    return [
        {**dict(zip(KEYS, group, strict=True)), "key_name": names[group], **found[group]} for group in sorted(found)
    ]


@cache
def upsert(dialect: str) -> Executable:
    """Return the statement that adds an entry of `increments` to its sum, or makes it. (To build it takes a ms.)"""
    insert = sqlite.insert(USAGE_DAILY) if dialect == "sqlite" else postgresql.insert(USAGE_DAILY)
    summed = {name: USAGE_DAILY.c[name] + insert.excluded[name] for name in SUMS}
    return insert.on_conflict_do_update(
        index_elements=[USAGE_DAILY.c[name] for name in KEYS],
        set_={**summed, "key_name": insert.excluded.key_name},
    )


def _add(sums: dict[str, float], row: Columns) -> None:
    sums["requests"] += 1
    sums["attempts"] += _number(row["tries"])
    for name in _AS_THEY_ARE:
        sums[name] += _number(row[name])
    if isinstance(wasted := row["wasted"], Mapping):
        sums["wasted_tokens"] += _number(wasted.get("input")) + _number(wasted.get("output"))
    if (counted := COUNTED.get(str(row["outcome"]))) is not None:
        sums[counted] += 1


def _name(value: object, limit: int) -> str:
    return str(value)[:limit] if value is not None else ""


def _number(value: object) -> float:
    """Return a number, an int if it was one; 0 for what is unknown or none."""
    return value if isinstance(value, int | float) and math.isfinite(value) else 0
