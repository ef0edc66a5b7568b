"""One transaction of the writer: new rows of each queue, and what they add to the daily sums.

A commit whose answer was lost is tried again, so rows may be there already: they are left alone and add nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from sqlalchemy import JSON, Boolean, Connection, Table
from sqlalchemy.dialects import sqlite

from troyproxy.accounting.records import UsageRow
from troyproxy.errors import ValidationFailed
from troyproxy.store.daily import Grouping, increments, upsert
from troyproxy.store.database import Doing, Work
from troyproxy.store.encoding import JsonText, written_json
from troyproxy.store.queue import Columns, Item
from troyproxy.store.quota_daily import quota_increments, quota_upsert
from troyproxy.store.sqlite_insert import SqliteInsert
from troyproxy.store.tables import USAGE_ROWS
from troyproxy.store.upserting import Insert, insert
from troyproxy.store.usage_values import NAMES, Values, values_of

Upsert = Callable[[str], Insert]

_ID: Final = USAGE_ROWS.c.request_id
_TREES: Final = tuple(column.name for column in USAGE_ROWS.columns if isinstance(column.type, JSON))
_FLAGS: Final = tuple(column.name for column in USAGE_ROWS.columns if isinstance(column.type, Boolean))


def inserting(batches: Mapping[Table, Sequence[Item]], grouping: Grouping) -> Work:
    """Return the work that stores *batches*; what a table has already stays as it is.

    On SQLite it raises ValidationFailed when that is so of one of several rows: each is to be stored by itself then.
    """

    def work(connection: Doing) -> None:
        for table, items in batches.items():
            usage = [item for item in items if isinstance(item, UsageRow)]
            events = [item for item in items if not isinstance(item, UsageRow)]
            if isinstance(connection, sqlite3.Connection):
                _into_sqlite(connection, usage, grouping)
                _events_into_sqlite(connection, table, events)
            else:
                _into_postgresql(connection, usage, grouping)
                if events:
                    connection.execute(insert("postgresql", table).on_conflict_do_nothing(), events)

    return work


def _into_sqlite(connection: sqlite3.Connection, rows: Sequence[UsageRow], grouping: Grouping) -> None:
    """Store *rows* and what they add. How many were not there is known, which ones is not: of several it must be all.

    Raises ValidationFailed otherwise.
    """
    new = _usage_insert().run(connection, [values_of(row) for row in rows])
    if new < len(rows) > 1:
        raise ValidationFailed("some of the rows are there already")
    if new:
        _add_to_sqlite(connection, _sums_insert(upsert), increments(rows, grouping))
        _add_to_sqlite(connection, _sums_insert(quota_upsert), quota_increments(rows))


def _add_to_sqlite(connection: sqlite3.Connection, adding: SqliteInsert, entries: Sequence[Columns]) -> None:
    adding.run(connection, [tuple([entry[name] for name in adding.names]) for entry in entries])


def _events_into_sqlite(connection: sqlite3.Connection, table: Table, events: Sequence[Columns]) -> None:
    if events:
        written = [{**event, "payload": written_json(event["payload"])} for event in events]
        _add_to_sqlite(connection, _events_insert(table), written)


def _into_postgresql(connection: Connection, rows: Sequence[UsageRow], grouping: Grouping) -> None:
    """Store *rows* and what those add that were not there.

    One statement with all rows, whose answer is the truth: to ask beforehand what is there would miss what another
    transaction (our own, whose answer was lost) is about to commit.
    """
    if not rows:
        return
    once = {values[0]: (values, row) for row in rows for values in [values_of(row)]}
    statement = insert("postgresql", USAGE_ROWS).on_conflict_do_nothing().returning(_ID)
    stored = connection.execute(statement, [_columns(values) for values, _ in once.values()]).scalars().all()
    fresh = [once[request_id][1] for request_id in stored]
    for adding, entries in ((upsert, increments(fresh, grouping)), (quota_upsert, quota_increments(fresh))):
        if entries:
            connection.execute(adding("postgresql"), entries)


def _columns(values: Values) -> Columns:
    """Return *values* with the types that PostgreSQL's driver insists on."""
    columns = dict(zip(NAMES, values, strict=True))
    for names, kind in ((_TREES, JsonText), (_FLAGS, bool)):
        columns.update({name: kind(columns[name]) for name in names if columns[name] is not None})
    return columns


@cache
def _usage_insert() -> SqliteInsert:
    return SqliteInsert(sqlite.insert(USAGE_ROWS).on_conflict_do_nothing())


@cache
def _sums_insert(statement: Upsert) -> SqliteInsert:
    return SqliteInsert(statement("sqlite"))


@cache
def _events_insert(table: Table) -> SqliteInsert:
    return SqliteInsert(sqlite.insert(table).on_conflict_do_nothing(), without="id")
