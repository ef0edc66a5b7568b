"""What the upstream of each account answered, by UTC day: what the rows of one batch add to ``quota_daily``.

``usage_daily`` tells what was served to whom; it cannot tell a 429 that was failed over, nor who was asked before. Here
each attempt counts for the account that was asked. A sum is a lower bound, see `accounting.quota_board.DayUse`.
One row for each day and account, and accounts are made by operators only; days stay, as those of ``usage_daily`` do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from sqlalchemy import Select, select

from troyproxy.accounting.quota_board import DayUse
from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.store.daily import DAY_S, NAME_CHARS, day_of
from troyproxy.store.encoding import short
from troyproxy.store.queue import Columns
from troyproxy.store.tables import QUOTA_DAILY
from troyproxy.store.upserting import Insert, insert

Group = tuple[str, str, str]
"""Day, provider, account."""

KEYS: Final = ("day", "provider", "account")
COUNTS: Final = ("requests", "rate_limited", "embeddings", "tokens", "told")
EMBEDDINGS: Final = "/v1/embeddings"
RATE_LIMITED: Final = 429
MOST_ACCOUNTS: Final = 10_000


@dataclass(slots=True)
class Asked:
    """What the attempts at one account add: its columns of ``quota_daily``."""

    requests: int = 0
    rate_limited: int = 0
    embeddings: int = 0
    tokens: int = 0
    told: int = 0

    def add(self, attempts: Iterable[AttemptRecord], *, embedding: bool) -> None:
        """Add attempts. One whose upstream gave no answer, or one that no quota may count, adds nothing."""
        for attempt in attempts:
            status, usage = attempt.status, attempt.usage
            if status == RATE_LIMITED:
                self.rate_limited += 1
            elif status is not None and status < 400:
                self.requests += 1
                self.embeddings += embedding
                if usage is not None and not usage.estimated:
                    self.tokens += usage.input + usage.output
                    self.told += 1


NOTHING: Final = Asked()


def quota_increments(rows: Iterable[UsageRow]) -> list[Columns]:
    """Return what *rows* add, one entry for each group, in one order everywhere (as `daily` does)."""
    alike: dict[tuple[bool, float, str, str], list[AttemptRecord]] = {}
    for row in rows:
        embedding = row.route == EMBEDDINGS
        for attempt in row.attempts:
            names = embedding, attempt.started_at // DAY_S, attempt.provider, attempt.account
            same = alike.get(names)
            if same is None:
                alike[names] = [attempt]
            else:
                same.append(attempt)
    found: dict[Group, Asked] = {}
    for (embedding, *_), same in alike.items():
        found.setdefault(_group(same[0]), Asked()).add(same, embedding=embedding)
    added = [(group, found[group]) for group in sorted(found) if found[group] != NOTHING]
    return [{**dict(zip(KEYS, group, strict=True)), **_columns(asked)} for group, asked in added]


@cache
def quota_upsert(dialect: str) -> Insert:
    """Return the statement that adds an entry of `quota_increments` to its sum, or makes it."""
    adding = insert(dialect, QUOTA_DAILY)
    return adding.on_conflict_do_update(
        index_elements=[QUOTA_DAILY.c[name] for name in KEYS],
        set_={name: QUOTA_DAILY.c[name] + adding.excluded[name] for name in COUNTS},
    )


def used_on(day: str) -> Select[tuple[object, ...]]:
    """Return the query for the sums of one UTC day."""
    column = QUOTA_DAILY.c
    wanted = (column.provider, column.account, *(column[name] for name in COUNTS))
    return select(*wanted).where(column.day == day).order_by(column.provider, column.account).limit(MOST_ACCOUNTS)


def day_use(row: Mapping[str, object]) -> DayUse:
    """Return a row of `used_on`."""
    return DayUse(str(row["provider"]), str(row["account"]), **{name: int(str(row[name])) for name in COUNTS})


def _group(attempt: AttemptRecord) -> Group:
    return day_of(attempt.started_at), short(attempt.provider)[:NAME_CHARS], short(attempt.account)[:NAME_CHARS]


def _columns(asked: Asked) -> Columns:
    return {name: getattr(asked, name) for name in COUNTS}
