"""Daily sums: what the rows of one batch add to ``usage_daily``, and the statement that adds it. Days are UTC.

A sum is a lower bound: tokens nobody reported and costs without a price add nothing. Sums stay when rows are pruned, so
what could grow without end is bounded here: names are cut, and of one day only so many different targets get a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from math import isfinite
from typing import Final

from troyproxy.accounting.records import UsageRow
from troyproxy.store.encoding import short
from troyproxy.store.queue import Columns
from troyproxy.store.tables import USAGE_DAILY
from troyproxy.store.upserting import Insert, insert

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
DAY_S: Final = 86_400
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

    def of(self, row: UsageRow) -> Group:
        """Return the group of *row*, and remember it."""
        day = day_of(row.at)
        key_id, provider = _name(row.key_id, NAME_CHARS), _name(row.provider, NAME_CHARS)
        group = (day, key_id, provider, _name(row.model, MODEL_CHARS))
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


@dataclass(slots=True)
class Sums:
    """What the requests of one group add: its columns of ``usage_daily``."""

    key_name: str = ""
    requests: int = 0
    succeeded: int = 0
    client_errors: int = 0
    failed: int = 0
    cancelled: int = 0
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    wasted_tokens: int = 0
    cost_usd: float = 0.0
    duration_ms: float = 0.0

    def add(self, rows: Sequence[UsageRow]) -> None:
        """Add requests of the group, the latest of which says how the key is called."""
        self.requests += len(rows)
        self.key_name = _name(rows[-1].key_name, NAME_CHARS)
        for outcome, count in Counter([row.outcome for row in rows]).items():
            counted = COUNTED.get(outcome)
            if counted is not None:
                setattr(self, counted, getattr(self, counted) + count)
        self.attempts += sum([len(row.attempts) for row in rows])
        self.wasted_tokens += sum([row.wasted.total for row in rows if row.wasted is not None])
        self.cost_usd += sum([row.cost_usd for row in rows if row.cost_usd is not None and isfinite(row.cost_usd)])
        self.duration_ms += sum([row.duration_ms for row in rows if isfinite(row.duration_ms)])
        used = [row.usage for row in rows if row.usage is not None]
        self.input_tokens += sum([usage.input for usage in used])
        self.output_tokens += sum([usage.output for usage in used])
        self.cached_tokens += sum([usage.cached for usage in used])
        self.reasoning_tokens += sum([usage.reasoning for usage in used])


def increments(rows: Iterable[UsageRow], grouping: Grouping) -> list[Columns]:
    """Return what *rows* add, one entry for each group, in one order everywhere.

    The order matters: two instances that lock the same sums in different orders could wait for each other.
    """
    alike: dict[tuple[object, ...], list[UsageRow]] = {}
    for row in rows:
        names = row.at // DAY_S, row.key_id, row.provider, row.model
        same = alike.get(names)
        if same is None:
            alike[names] = [row]
        else:
            same.append(row)
    found: dict[Group, Sums] = {}
    for same in alike.values():
        found.setdefault(grouping.of(same[0]), Sums()).add(same)
    return [{**dict(zip(KEYS, group, strict=True)), **_columns(found[group])} for group in sorted(found)]


@cache
def upsert(dialect: str) -> Insert:
    """Return the statement that adds an entry of `increments` to its sum, or makes it. (To build it takes a ms.)"""
    adding = insert(dialect, USAGE_DAILY)
    summed = {name: USAGE_DAILY.c[name] + adding.excluded[name] for name in SUMS}
    return adding.on_conflict_do_update(
        index_elements=[USAGE_DAILY.c[name] for name in KEYS],
        set_={**summed, "key_name": adding.excluded.key_name},
    )


def _columns(sums: Sums) -> Columns:
    return {name: getattr(sums, name) for name in Sums.__slots__}


def _name(name: str | None, limit: int) -> str:
    return "" if name is None else short(name)[:limit]
