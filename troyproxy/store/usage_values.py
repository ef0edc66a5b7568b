"""A usage row as the values that are inserted: cleaned, long texts cut, trees as JSON text. Never raises on odd values.

Hundreds of rows a second come through here, and almost all of them hold short plain texts and plain trees. Those are
taken as they are; what is odd in any way goes through `encoding`, whose rules are the only ones.
"""

from __future__ import annotations

import json
from typing import Final

import msgspec

from troyproxy.accounting.records import UsageRow, failovers, leaks
from troyproxy.accounting.usage import Usage
from troyproxy.store.encoding import KEPT_CHARS, maybe_short, plain
from troyproxy.store.tables import USAGE_ROWS

NAMES: Final = tuple(column.name for column in USAGE_ROWS.columns)
"""The columns of `values_of`, in order."""
Values = tuple[object, ...]

_encode: Final = msgspec.json.Encoder().encode
_UNKNOWN: Final = (None,) * 6
_EMPTY: Final = "[]"


def values_of(row: UsageRow) -> Values:
    """Return *row* as it is stored, in the order of `NAMES`.

    What is true or false is 1 or 0, as SQLite has it: its driver takes ten times as long for a bool.
    """
    attempts = row.attempts
    several = len(attempts) > 1
    request_id, route, key_id, key_name, requested, combo, provider, model, account, trail, adapted = _texts(row)
    return (
        request_id,
        row.at,
        route,
        key_id,
        key_name,
        requested,
        combo,
        row.strategy,
        1 if row.stream else 0,
        row.status,
        row.outcome,
        provider,
        model,
        account,
        json_text(attempts) if attempts else _EMPTY,
        json_text(row.skipped) if row.skipped else _EMPTY,
        str(row.seed),
        json_text(row.needs),
        row.est_tokens,
        *_tokens(row.usage),
        None if row.wasted is None else json_text(row.wasted),
        row.cost_usd,
        row.duration_ms,
        row.overhead_ms,
        row.first_token_ms,
        trail,
        adapted,
        len(attempts),
        failovers(attempts) if several else 0,
        leaks(attempts) if several or (attempts and attempts[0].leak) else 0,
    )


def json_text(value: object) -> str:
    """Return *value* as JSON: dataclasses are objects, non-finite numbers null, anything odd its text."""
    try:
        text = _encode(value)
    except (TypeError, ValueError, OverflowError):  # a type that JSON lacks, or half a character
        text = b"\\u0000"
    if b"\\u0000" in text:  # PostgreSQL takes no NUL, however it is written
        return json.dumps(plain(value))
    return text.decode()


def _texts(row: UsageRow) -> tuple[str | None, ...]:
    """Return the texts that somebody outside could have chosen."""
    texts = (
        row.request_id,
        row.route,
        row.key_id,
        row.key_name,
        row.requested_model,
        row.combo,
        row.provider,
        row.model,
        row.account,
        row.trail,
        row.adapted,
    )
    together = "%s%s%s%s%s%s%s%s%s%s%s" % texts  # noqa: UP031 -- one step for all; a None is as plain as they are
    if len(together) <= KEPT_CHARS and together.isascii() and "\0" not in together:
        return texts
    return tuple([maybe_short(text) for text in texts])


def _tokens(usage: Usage | None) -> tuple[int | None, ...]:
    if usage is None:
        return _UNKNOWN
    return usage.input, usage.output, usage.cached, usage.reasoning, usage.audio, 1 if usage.estimated else 0
