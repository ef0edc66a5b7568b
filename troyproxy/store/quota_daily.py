"""What the upstream of each account answered, by UTC day: what the rows of one batch add to ``quota_daily``.

``usage_daily`` tells what was served to whom; it cannot tell a 429 that was failed over, nor who was asked before. Here
each attempt counts for the account that was asked. A sum is a lower bound, see `accounting.quota_board.DayUse`.
One row for each day and account, and accounts are made by operators only; days stay, as those of ``usage_daily`` do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from sqlalchemy import Executable, Select, select
from sqlalchemy.dialects import postgresql, sqlite

from troyproxy.accounting.quota_board import DayUse
from troyproxy.store.daily import NAME_CHARS, day_of
from troyproxy.store.queue import Columns
from troyproxy.store.tables import QUOTA_DAILY

Group = tuple[str, str, str]
"""Day, provider, account."""

KEYS: Final = ("day", "provider", "account")
COUNTS: Final = ("requests", "rate_limited", "embeddings", "tokens", "told")
EMBEDDINGS: Final = "/v1/embeddings"
RATE_LIMITED: Final = 429
MOST_ACCOUNTS: Final = 10_000


def quota_increments(rows: Sequence[Columns]) -> list[Columns]:
    """Return what *rows* of ``usage_rows`` add, one entry for each group, in one order everywhere (as `daily` does)."""
    found: dict[Group, dict[str, int]] = {}
    for row in rows:
        for attempt in _attempts(row):
            if (counted := _counted(attempt, embedding=row["route"] == EMBEDDINGS)) is not None:
                sums = found.setdefault(_group(attempt), dict.fromkeys(COUNTS, 0))
                for name, count in counted.items():
                    sums[name] += count
    return [{**dict(zip(KEYS, group, strict=True)), **found[group]} for group in sorted(found)]


@cache
def quota_upsert(dialect: str) -> Executable:
    """Return the statement that adds an entry of `quota_increments` to its sum, or makes it."""
    insert = sqlite.insert(QUOTA_DAILY) if dialect == "sqlite" else postgresql.insert(QUOTA_DAILY)
    return insert.on_conflict_do_update(
        index_elements=[QUOTA_DAILY.c[name] for name in KEYS],
        set_={name: QUOTA_DAILY.c[name] + insert.excluded[name] for name in COUNTS},
    )


def used_on(day: str) -> Select[tuple[object, ...]]:
    """Return the query for the sums of one UTC day."""
    column = QUOTA_DAILY.c
    wanted = (column.provider, column.account, *(column[name] for name in COUNTS))
    return select(*wanted).where(column.day == day).order_by(column.provider, column.account).limit(MOST_ACCOUNTS)


def day_use(row: Mapping[str, object]) -> DayUse:
    """Return a row of `used_on`."""
    return DayUse(str(row["provider"]), str(row["account"]), **{name: int(str(row[name])) for name in COUNTS})


def _attempts(row: Columns) -> Iterator[Mapping[str, object]]:
    listed = row["attempts"]
    return (attempt for attempt in listed if isinstance(attempt, Mapping)) if isinstance(listed, list) else iter(())


def _group(attempt: Mapping[str, object]) -> Group:
    day = day_of(float(str(attempt["started_at"])))
    return day, str(attempt["provider"])[:NAME_CHARS], str(attempt["account"])[:NAME_CHARS]


def _counted(attempt: Mapping[str, object], *, embedding: bool) -> dict[str, int] | None:
    """Return what an attempt adds; None for one whose upstream gave no answer, or one that no quota may count."""
    status, usage = attempt["status"], attempt["usage"]
    if status == RATE_LIMITED:
        return {"rate_limited": 1}
    if not isinstance(status, int) or status >= 400:
        return None
    counted = {"requests": 1, "embeddings": int(embedding)}
    if isinstance(usage, Mapping) and not usage.get("estimated"):
        counted |= {"tokens": int(usage["input"]) + int(usage["output"]), "told": 1}
    return counted
