"""What the spans of a finished request say: names, times, attributes and errors, as plain data.

No prompt, no answer and no key is in them; text that may come from outside is masked once more (names of the
configuration are not). Tokens stand on the attempts alone, so that a sum over spans counts each of them once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from troyproxy.accounting.records import AttemptRecord, Traced, UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.telemetry.clean import clean
from troyproxy.telemetry.span_names import GEN_AI, operation_of, provider_of
from troyproxy.wire.traceparent import child_id

Value = str | int | float | bool | Sequence[str]

OK: Final = "ok"
LONGEST: Final = 200
"""Characters of one text."""
SHOWN: Final = 20
"""Skips on a span."""
NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class SpanFacts:
    """One span. Times are unix nanoseconds; *error* is the description of its status, None: no error."""

    span_id: str
    name: str
    start: int
    end: int
    attributes: Mapping[str, Value]
    error: str | None = None


def request_span(row: UsageRow, traced: Traced, *, latest: bool) -> SpanFacts:
    """Return the span of the request itself, as HTTP servers make them."""
    http: dict[str, Value | None] = {
        "http.request.method": "POST",
        "http.route": row.route,
        "http.response.status_code": row.status or None,
    }
    failed = row.status >= 500 or row.outcome == "truncated"
    error: dict[str, Value | None] = {"error.type": row.outcome if failed else None}
    told = _shown({**http, **_named(_asked(row), latest=latest), **_ours(row), **error})
    start, end = _times(row.at, row.duration_ms)
    return SpanFacts(traced.span_id, f"POST {row.route}", start, end, told, row.outcome if failed else None)


def attempt_spans(row: UsageRow, traced: Traced, *, latest: bool) -> list[SpanFacts]:
    """Return one span for each attempt, in their order: what a client of a model says of its call."""
    return [
        _attempt(row, attempt, number, child_id(traced.span_id, number), latest=latest)
        for number, attempt in enumerate(row.attempts, 1)
    ]


def _attempt(row: UsageRow, attempt: AttemptRecord, number: int, span_id: str, *, latest: bool) -> SpanFacts:
    failed, model = attempt.outcome != OK, _text(attempt.model)
    operation = "chat" if attempt.handoff else operation_of(row.route)
    gen_ai: dict[str, Value | None] = {
        "operation": operation,
        "provider": provider_of(attempt.provider),
        "request_model": model,
        "stream": row.stream and not attempt.handoff,
        **_tokens(attempt.usage),
    }
    ours: dict[str, Value | None] = {
        "http.response.status_code": attempt.status,
        "error.type": attempt.outcome if failed else None,
        "troy.attempt": number,
        "troy.provider": attempt.provider,
        "troy.account": attempt.account,
        "troy.outcome": attempt.outcome,
        "troy.wait_s": attempt.hint_s,
        "troy.handoff": attempt.handoff or None,
        "troy.leak": attempt.leak or None,
        "troy.usage.estimated": (attempt.usage is not None and attempt.usage.estimated) or None,
    }
    start, end = _times(attempt.started_at, attempt.duration_ms)
    told = _shown({**_named(gen_ai, latest=latest), **ours})
    error = _text(attempt.reason or attempt.outcome) if failed else None
    return SpanFacts(span_id, f"{operation} {model}", start, end, told, error)


def _asked(row: UsageRow) -> dict[str, Value | None]:
    return {
        "operation": operation_of(row.route),
        "provider": None if row.provider is None else provider_of(row.provider),
        "request_model": _text(row.requested_model) or None,
        "response_model": None if row.model is None else _text(row.model),
        "stream": row.stream,
        "first_output_s": None if row.first_token_ms is None else row.first_token_ms / 1000,
    }


def _ours(row: UsageRow) -> dict[str, Value | None]:
    more = (f"+{len(row.skipped) - SHOWN}",) if len(row.skipped) > SHOWN else ()
    skipped = (*(f"{spec}={reason}" for spec, reason in row.skipped[:SHOWN]), *more)
    return {
        "troy.request_id": row.request_id,
        "troy.outcome": row.outcome,
        "troy.key_name": row.key_name,
        "troy.combo": row.combo,
        "troy.strategy": row.strategy,
        "troy.provider": row.provider,
        "troy.account": row.account,
        "troy.attempts": len(row.attempts),
        "troy.skipped": tuple(map(_text, skipped)) or None,
        "troy.adapted": _text(row.adapted) or None,
        "troy.cost_usd": row.cost_usd,
        "troy.overhead_s": None if row.overhead_ms is None else row.overhead_ms / 1000,
    }


def _tokens(usage: Usage | None) -> dict[str, Value | None]:
    if usage is None:
        return {}
    more = {"cached": usage.cached or None, "reasoning": usage.reasoning or None}
    return {"input": usage.input, "output": usage.output, **more}


def _named(facts: Mapping[str, Value | None], *, latest: bool) -> dict[str, Value | None]:
    return {GEN_AI[fact][latest]: value for fact, value in facts.items()}


def _shown(told: Mapping[str, Value | None]) -> dict[str, Value]:
    return {name: value for name, value in told.items() if value is not None}


def _text(text: str) -> str:
    return clean(text, limit=LONGEST) if text else text


def _times(at: float, duration_ms: float) -> tuple[int, int]:
    start = round(at * NS)
    return start, start + round(duration_ms * NS / 1000)
