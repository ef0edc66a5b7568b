"""One transaction of the writer: new rows of each queue, and what they add to the daily sums.

A commit whose answer was lost is tried again, so rows may be there already: they are left alone and add nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

from troyproxy.store.daily import Grouping, increments, upsert
from troyproxy.store.queue import Columns
from troyproxy.store.quota_daily import quota_increments, quota_upsert
from troyproxy.store.tables import USAGE_ROWS

Work = Callable[[Connection], None]

_ID: Final = USAGE_ROWS.c.request_id


def inserting(batches: Mapping[Table, Sequence[Columns]], grouping: Grouping) -> Work:
    """Return the work that stores *batches*; what a table has already stays as it is."""

    def work(connection: Connection) -> None:
        for table, rows in batches.items():
            if table is USAGE_ROWS:
                _insert_usage(connection, rows, grouping)
            elif rows:
                connection.execute(_insert(connection.dialect.name, table).on_conflict_do_nothing(), rows)

    return work


def _insert_usage(connection: Connection, rows: Sequence[Columns], grouping: Grouping) -> None:
    if not rows:
        return
    # One statement with all rows, whose answer is the truth: to ask beforehand what is there would miss what another
    # transaction (our own, whose answer was lost) is about to commit.
    statement = _insert(connection.dialect.name, USAGE_ROWS).on_conflict_do_nothing().returning(_ID)
    once = {row["request_id"]: row for row in rows}
    new = connection.execute(statement, list(once.values())).scalars().all()
    fresh = [once[request_id] for request_id in new]
    if added := increments(fresh, grouping):
        connection.execute(upsert(connection.dialect.name), added)
    if asked := quota_increments(fresh):
        connection.execute(quota_upsert(connection.dialect.name), asked)


def _insert(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
