"""Invented requests, many and fast: 50 keys, 40 models of 8 providers, 7 combos; one of 20 fails, one fails over."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.store.usage_values import NAMES, values_of

DAY_S: Final = 86_400.0
NOW: Final = 1_800_000_000.0
"""2027-01-15, 08:00 UTC."""
SPAN_S: Final = 100 * DAY_S
VARIETIES: Final = 2800
"""Different rows; the others differ from them in id, time and duration."""

# Enough of the sums for the daily pages: what the writer would have added up.
_SUMS: Final = """
INSERT INTO usage_daily
SELECT strftime('%Y-%m-%d', at, 'unixepoch'), key_id, coalesce(provider, ''), coalesce(model, ''), max(key_name),
    count(*), sum(outcome = 'ok'), 0, sum(outcome = 'upstream_error'), 0, sum(tries), sum(coalesce(input_tokens, 0)),
    sum(coalesce(output_tokens, 0)), 0, 0, 0, sum(coalesce(cost_usd, 0)), sum(duration_ms)
FROM usage_rows GROUP BY 1, 2, 3, 4
"""


def request_id(number: int) -> str:
    """Return an id as the gateway makes them: its place in the index is anywhere."""
    return f"req_{number * 0x9E3779B97F4A7C15F39CC060 % 2**96:024x}"


def request(number: int) -> UsageRow:
    """Return one invented request."""
    key, model, good = number % 50, number % 40, number % 20 != 0
    provider = f"provider-{model % 8}"
    served = AttemptRecord(provider, f"model-{model}", "team-a", "ok", 200, NOW, 800.0)
    failed = AttemptRecord(f"provider-{(model + 1) % 8}", "model-x", "team-b", "rate", 429, NOW, 12.5, "slow down", 3.0)
    return UsageRow(
        request_id=request_id(number),
        at=NOW,
        route="/v1/chat/completions",
        key_id=f"key-{key}",
        key_name=f"team {key}",
        requested_model="daily",
        combo=f"combo-{number % 7}",
        strategy="fallback",
        stream=True,
        status=200 if good else 502,
        outcome="ok" if good else "upstream_error",
        provider=provider if good else None,
        model=f"model-{model}" if good else None,
        account="team-a" if good else None,
        attempts=(*([failed] if number % 20 == 1 else []), served if good else failed),
        seed=number,
        needs={"tools": False, "vision": False, "json": False, "est_tokens": 900, "modes": []},
        est_tokens=900,
        usage=Usage(1000, 200) if good else None,
        cost_usd=0.00123 if good else None,
        duration_ms=800.0 + number % 997,
        overhead_ms=1.5,
        first_token_ms=200.0 + number % 499 if good else None,
        trail=f"{provider}/model-{model}#team-a=ok",
    )


def fill(file: Path, rows: int) -> None:
    """Put *rows* requests of the last hundred days into a migrated file."""
    columns = NAMES
    statement = f"INSERT INTO usage_rows ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA synchronous = OFF")
        with database:
            database.executemany(statement, _values(rows))
        with database:
            database.execute(_SUMS)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _values(rows: int) -> Iterator[list[object]]:
    """Yield the values of each row, as SQLite takes them."""
    drafts = [values_of(request(number)) for number in range(min(rows, VARIETIES))]
    for number in range(rows):
        draft = drafts[number % len(drafts)]
        yield [request_id(number), NOW - SPAN_S + SPAN_S * number / rows, *draft[2:]]
