"""Usage rows: how one is stored, queued and read back. Who writes the queue is `writer`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace
from sqlalchemy import ColumnElement, Row, Select, and_, func, or_, select, true

from troyproxy.accounting.pages import Page, Position, Wanted, position
from troyproxy.accounting.past import AccountSum, Past
from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.store.database import Database
from troyproxy.store.encoding import clean
from troyproxy.store.queue import BoundedQueue
from troyproxy.store.tables import USAGE_ROWS

MOST_SCANNED: Final = 50_000
"""Rows that one page of a filtered list looks at."""
MOST_ACCOUNTS: Final = 10_000
CANCELLED: Final = "cancelled"


class UsageJournal:
    """`ports.UsageSink`: queues rows and wakes the writer."""

    def __init__(self, queue: BoundedQueue, wake: Callable[[], None]) -> None:
        self._queue = queue
        self._wake = wake

    def record(self, row: UsageRow) -> None:
        """Queue *row*; never waits, never raises. While others wait, the writer is awake."""
        if self._queue.append(row):
            self._wake()


class SqlRequests:
    """`ports.RequestRepository`. Every method raises StoreUnavailable."""

    def __init__(self, database: Database, *, most_scanned: int = MOST_SCANNED) -> None:
        self._database = database
        self._most_scanned = most_scanned

    async def find(self, request_id: str) -> UsageRow | None:
        """Return the row of one request, once the writer has stored it."""
        wanted = select(USAGE_ROWS).where(USAGE_ROWS.c.request_id == clean(request_id))
        async with self._database.read() as connection:
            row = (await connection.execute(wanted)).one_or_none()
        return None if row is None else _usage_row(row)

    async def recent(self, *, limit: int = 50) -> list[UsageRow]:
        """Return the newest rows, newest first."""
        return list((await self.page(Wanted(), limit=limit)).rows)

    async def page(self, wanted: Wanted, *, before: Position | None = None, limit: int = 50) -> Page:
        """Return a page, newest first. It looks at a bounded number of rows, so it may be short and yet have an end."""
        async with self._database.read() as connection:
            floor = None
            if wanted.selective:
                floor = (await connection.execute(floor_below(before, self._most_scanned))).scalar_one_or_none()
            rows = (await connection.execute(matching(wanted, before=before, floor=floor, limit=limit + 1))).all()
        found = [_usage_row(row) for row in rows[:limit]]
        if len(rows) > limit:
            return Page(found, position(found[-1]))
        reached = floor is None or (wanted.since is not None and floor < wanted.since)
        return Page(found, None if reached else Position(floor or 0.0, ""))

    async def following(self, after: Position, *, limit: int = 500) -> list[UsageRow]:
        """Return the rows behind a place, oldest first; fewer than *limit* are the last ones."""
        at, request_id = USAGE_ROWS.c.at, USAGE_ROWS.c.request_id
        behind = and_(at >= after.at, or_(at > after.at, request_id > clean(after.request_id)))
        wanted = select(USAGE_ROWS).where(behind).order_by(at, request_id).limit(limit)
        async with self._database.read() as connection:
            return [_usage_row(row) for row in (await connection.execute(wanted)).all()]

    async def attempts_since(self, at: float, *, limit: int) -> Past:
        """Return the attempts of the newest *limit* requests that arrived at *at* or later."""
        async with self._database.read() as connection:
            rows = (await connection.execute(newest_since(at, limit))).all()
        return await asyncio.to_thread(_past, rows, at if len(rows) < limit else rows[-1].at)

    async def served_between(self, since: float, until: float) -> list[AccountSum]:
        """Return what each account served of the requests that arrived from *since* on and before *until*."""
        async with self._database.read() as connection:
            rows = (await connection.execute(sums_between(since, until))).all()
        return [AccountSum(row.provider, row.account, row.requests, int(row.tokens), float(row.usd)) for row in rows]


def newest_since(at: float, limit: int) -> Select[tuple[object, ...]]:
    """Return the query for the newest rows, as far as attempts are concerned."""
    arrived, ended = USAGE_ROWS.c.at, (USAGE_ROWS.c.outcome, USAGE_ROWS.c.attempts)
    return select(arrived, *ended).where(arrived >= at).order_by(arrived.desc()).limit(limit)


def sums_between(since: float, until: float) -> Select[tuple[object, ...]]:
    """Return the query for what each account served."""
    column = USAGE_ROWS.c
    tokens = func.coalesce(column.input_tokens, 0) + func.coalesce(column.output_tokens, 0)
    return (
        select(
            column.provider,
            column.account,
            func.count().label("requests"),
            func.sum(tokens).label("tokens"),
            func.sum(func.coalesce(column.cost_usd, 0.0)).label("usd"),
        )
        .where(column.at >= since, column.at < until, column.provider.is_not(None), column.account.is_not(None))
        .group_by(column.provider, column.account)
        .limit(MOST_ACCOUNTS)
    )


def floor_below(before: Position | None, most: int) -> Select[float]:
    """Return the query for the instant that lies *most* rows down the list; it finds nothing when there are fewer."""
    at = USAGE_ROWS.c.at
    return select(at).where(_before(before)).order_by(at.desc()).limit(1).offset(most)


def matching(wanted: Wanted, *, before: Position | None, floor: float | None, limit: int) -> Select[tuple[object, ...]]:
    """Return the query for the rows of a page: those that are *wanted*, from *before* down to *floor* (itself too)."""
    column = USAGE_ROWS.c
    bounds = [at for at in (wanted.since, floor) if at is not None]
    conditions = [_before(before), *([column.at >= max(bounds)] if bounds else [])]
    if wanted.key is not None:
        conditions.append(or_(column.key_id == clean(wanted.key), column.key_name == clean(wanted.key)))
    if wanted.model is not None:
        conditions.append(_is_model(clean(wanted.model)))
    if wanted.status is not None:
        conditions.append(column.status == wanted.status)
    if wanted.outcome is not None:
        conditions.append(column.outcome == wanted.outcome)
    return select(USAGE_ROWS).where(*conditions).order_by(column.at.desc(), column.request_id.desc()).limit(limit)


def _before(before: Position | None) -> ColumnElement[bool]:
    """Return what holds for the rows behind a place in the list, so that the index on `at` is enough to find them."""
    column = USAGE_ROWS.c
    if before is None:
        return true()
    place = or_(column.at < before.at, column.request_id < clean(before.request_id))
    return and_(column.at <= before.at, place)


def _is_model(model: str) -> ColumnElement[bool]:
    column = USAGE_ROWS.c
    provider, _, name = model.partition("/")
    served = and_(column.provider == provider, column.model == name)
    return or_(column.requested_model == model, column.model == model, served)


def _usage(row: Row[tuple[object, ...]]) -> Usage | None:
    if row.input_tokens is None:
        return None
    return Usage(
        input=row.input_tokens,
        output=row.output_tokens,
        cached=row.cached_tokens,
        reasoning=row.reasoning_tokens,
        audio=row.audio_tokens,
        estimated=row.tokens_estimated,
    )


def _usage_row(row: Row[tuple[object, ...]]) -> UsageRow:
    return UsageRow(
        request_id=row.request_id,
        at=row.at,
        route=row.route,
        key_id=row.key_id,
        key_name=row.key_name,
        requested_model=row.requested_model,
        combo=row.combo,
        strategy=row.strategy,
        stream=row.stream,
        status=row.status,
        outcome=row.outcome,
        provider=row.provider,
        model=row.model,
        account=row.account,
        attempts=msgspec.convert(row.attempts, tuple[AttemptRecord, ...]),
        skipped=tuple((spec, reason) for spec, reason in row.skipped),
        seed=int(row.seed),
        needs=row.needs,
        est_tokens=row.est_tokens,
        usage=_usage(row),
        wasted=msgspec.convert(row.wasted, Usage | None),
        cost_usd=row.cost_usd,
        duration_ms=row.duration_ms,
        overhead_ms=row.overhead_ms,
        first_token_ms=row.first_token_ms,
        trail=row.trail,
        adapted=row.adapted,
    )


def _past(rows: Sequence[Row[tuple[object, ...]]], since: float) -> Past:
    """Return *rows*, newest first, as attempts, oldest first; thousands of them, so it runs in a thread."""
    return Past(since, tuple(attempt for row in reversed(rows) for attempt in _attempts(row)))


def _attempts(row: Row[tuple[object, ...]]) -> tuple[AttemptRecord, ...]:
    attempts = msgspec.convert(row.attempts, tuple[AttemptRecord, ...])
    if row.outcome != CANCELLED or not attempts:
        return attempts
    return (*attempts[:-1], replace(attempts[-1], outcome=CANCELLED))
