"""Usage rows: how one is stored, queued and read back. Who writes the queue is `writer`."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from sqlalchemy import Row, select

from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.store.database import Database
from troyproxy.store.encoding import clean, maybe_short, plain, short
from troyproxy.store.queue import BoundedQueue, Columns
from troyproxy.store.tables import USAGE_ROWS


class UsageJournal:
    """`ports.UsageSink`: queues rows and wakes the writer."""

    def __init__(self, queue: BoundedQueue, wake: Callable[[], None]) -> None:
        self._queue = queue
        self._wake = wake

    def record(self, row: UsageRow) -> None:
        """Queue *row*; never waits, never raises."""
        self._queue.append(_columns(row))
        self._wake()


class SqlRequests:
    """`ports.RequestRepository`. Every method raises StoreUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, request_id: str) -> UsageRow | None:
        """Return the row of one request, once the writer has stored it."""
        wanted = select(USAGE_ROWS).where(USAGE_ROWS.c.request_id == clean(request_id))
        async with self._database.read() as connection:
            row = (await connection.execute(wanted)).one_or_none()
        return None if row is None else _usage_row(row)

    async def recent(self, *, limit: int = 50) -> list[UsageRow]:
        """Return the newest rows, newest first."""
        newest = select(USAGE_ROWS).order_by(USAGE_ROWS.c.at.desc(), USAGE_ROWS.c.request_id.desc()).limit(limit)
        async with self._database.read() as connection:
            rows = (await connection.execute(newest)).all()
        return [_usage_row(row) for row in rows]


def _columns(row: UsageRow) -> Columns:
    return {
        "request_id": short(row.request_id),
        "at": row.at,
        "route": short(row.route),
        "key_id": maybe_short(row.key_id),
        "key_name": maybe_short(row.key_name),
        "requested_model": short(row.requested_model),
        "combo": maybe_short(row.combo),
        "strategy": row.strategy,
        "stream": row.stream,
        "status": row.status,
        "outcome": row.outcome,
        "provider": maybe_short(row.provider),
        "model": maybe_short(row.model),
        "account": maybe_short(row.account),
        "attempts": plain(row.attempts),
        "skipped": plain(row.skipped),
        "seed": str(row.seed),
        "needs": plain(row.needs),
        "est_tokens": row.est_tokens,
        **_token_columns(row.usage),
        "wasted": plain(row.wasted),
        "cost_usd": row.cost_usd,
        "duration_ms": row.duration_ms,
        "overhead_ms": row.overhead_ms,
        "first_token_ms": row.first_token_ms,
        "trail": short(row.trail),
        "adapted": short(row.adapted),
    }


def _token_columns(usage: Usage | None) -> dict[str, int | bool | None]:
    return {
        "input_tokens": None if usage is None else usage.input,
        "output_tokens": None if usage is None else usage.output,
        "cached_tokens": None if usage is None else usage.cached,
        "reasoning_tokens": None if usage is None else usage.reasoning,
        "audio_tokens": None if usage is None else usage.audio,
        "tokens_estimated": None if usage is None else usage.estimated,
    }


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
