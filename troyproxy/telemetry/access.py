"""The access log: one line per finished request, with the facts of its usage row. ``logs.py`` gives it its form."""

from __future__ import annotations

import logging
from typing import Final

from troyproxy.accounting.records import UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.telemetry.silent import Silent

LOGGER: Final = "troyproxy.access"
SHOWN: Final = 10
"""Skips in a line."""


class AccessLog(Silent):
    """Writes at level info."""

    def __init__(self) -> None:
        self._log = logging.getLogger(LOGGER)

    def request_finished(self, row: UsageRow) -> None:
        """Write the line of *row*."""
        if self._log.isEnabledFor(logging.INFO):
            self._log.info("%s %d %s", row.route, row.status, row.outcome, extra={"facts": facts(row)})


def facts(row: UsageRow) -> dict[str, object]:
    """Return what the line says of *row*; a None is not written."""
    return {
        "request_id": row.request_id,
        "trace_id": row.trace_id,
        "route": row.route,
        "status": row.status,
        "outcome": row.outcome,
        "stream": row.stream,
        "key_name": row.key_name,
        "requested_model": row.requested_model,
        "combo": row.combo,
        "strategy": row.strategy,
        "provider": row.provider,
        "model": row.model,
        "account": row.account,
        "attempts": len(row.attempts),
        "trail": row.trail or None,
        "skipped": _skipped(row.skipped),
        "adapted": row.adapted or None,
        "leaks": ",".join(attempt.leak for attempt in row.attempts if attempt.leak) or None,
        **_tokens(row.usage),
        "wasted_tokens": row.wasted.total if row.wasted is not None else None,
        "cost_usd": row.cost_usd,
        "duration_ms": round(row.duration_ms, 1),
        "overhead_ms": _rounded(row.overhead_ms),
        "first_token_ms": _rounded(row.first_token_ms),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _skipped(pairs: tuple[tuple[str, str], ...]) -> str | None:
    more = (f"+{len(pairs) - SHOWN}",) if len(pairs) > SHOWN else ()
    return ",".join((*(f"{spec}={reason}" for spec, reason in pairs[:SHOWN]), *more)) or None


def _tokens(usage: Usage | None) -> dict[str, object]:
    if usage is None:
        return {}
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cached_tokens": usage.cached or None,
        "estimated": usage.estimated or None,
    }
