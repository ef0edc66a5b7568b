"""What the lists and figures of requests look like, as schemas."""

from __future__ import annotations

from typing import Final

from troyproxy.api.admin.schemas import (
    COUNT,
    FLAG,
    MOMENT,
    NUMBER,
    TEXT,
    exactly,
    listing,
    mapping,
    nullable,
    one_of,
    some,
    titled,
)

OUTCOMES: Final = ("ok", "client_error", "refused", "upstream_error", "cancelled", "truncated")

USAGE: Final = titled(
    "Usage",
    exactly(input=COUNT, output=COUNT, cached=COUNT, reasoning=COUNT, audio=COUNT, estimated=FLAG),
)
ATTEMPT: Final = titled(
    "Attempt",
    exactly(
        provider=TEXT,
        model=TEXT,
        account=TEXT,
        outcome=TEXT,
        status=nullable(COUNT),
        started_at=MOMENT,
        duration_ms=NUMBER,
        reason=TEXT,
        hint_s=nullable(NUMBER),
        usage=nullable(USAGE),
        cooldown_s=nullable(NUMBER),
        handoff=FLAG,
        leak=TEXT,
    ),
)
STORY: Final = titled(
    "Request",
    exactly(
        request_id=TEXT,
        at=MOMENT,
        route=TEXT,
        key_id=nullable(TEXT),
        key_name=nullable(TEXT),
        requested_model=TEXT,
        combo=nullable(TEXT),
        strategy=nullable(TEXT),
        stream=FLAG,
        status=COUNT,
        outcome=one_of(*OUTCOMES),
        provider=nullable(TEXT),
        model=nullable(TEXT),
        account=nullable(TEXT),
        attempts=listing(ATTEMPT),
        skipped=listing(exactly(member=TEXT, reason=TEXT)),
        seed=TEXT,
        needs=mapping({}),
        est_tokens=COUNT,
        usage=nullable(USAGE),
        wasted=nullable(USAGE),
        cost_usd=nullable(NUMBER),
        duration_ms=NUMBER,
        overhead_ms=nullable(NUMBER),
        first_token_ms=nullable(NUMBER),
        trail=TEXT,
        adapted=TEXT,
        trace_id=nullable(TEXT),
    ),
)
STORIES: Final = titled("Requests", exactly(data=listing(STORY), next_cursor=nullable(TEXT), stored=FLAG))

_TIMES: Final = exactly(p50=nullable(NUMBER), p95=nullable(NUMBER))
_FIGURES: Final = {
    "requests": COUNT,
    "succeeded": COUNT,
    "failed": COUNT,
    "success_rate": nullable(NUMBER),
    "attempts": nullable(COUNT),
    "attempts_per_request": nullable(NUMBER),
    "failovers": nullable(COUNT),
    "input_tokens": nullable(COUNT),
    "output_tokens": nullable(COUNT),
    "cached_tokens": nullable(COUNT),
    "reasoning_tokens": nullable(COUNT),
    "cost_usd": nullable(NUMBER),
    "duration_ms": _TIMES,
    "first_token_ms": _TIMES,
}
STATISTICS: Final = titled(
    "Statistics",
    exactly(
        hours=COUNT,
        since=MOMENT,
        until=MOMENT,
        complete=FLAG,
        timed=exactly(requests=COUNT, sampled=FLAG),
        totals=exactly(**_FIGURES),
        by_provider=listing(exactly(provider=nullable(TEXT), **_FIGURES)),
        by_model=listing(exactly(provider=nullable(TEXT), model=nullable(TEXT), **_FIGURES)),
        by_key=listing(exactly(key_id=nullable(TEXT), key_name=nullable(TEXT), **_FIGURES)),
        by_combo=listing(exactly(combo=nullable(TEXT), **_FIGURES)),
        by_outcome=listing(exactly(outcome=TEXT, **_FIGURES)),
        leaks=listing(exactly(provider=TEXT, model=TEXT, format=TEXT, action=TEXT, attempts=COUNT)),
    ),
)

_SUMS: Final = {
    "requests": COUNT,
    "succeeded": COUNT,
    "client_errors": COUNT,
    "failed": COUNT,
    "cancelled": COUNT,
    "success_rate": nullable(NUMBER),
    "attempts": COUNT,
    "input_tokens": COUNT,
    "output_tokens": COUNT,
    "cached_tokens": COUNT,
    "reasoning_tokens": COUNT,
    "wasted_tokens": COUNT,
    "cost_usd": NUMBER,
    "duration_ms": NUMBER,
    "mean_duration_ms": nullable(NUMBER),
}
_GROUP: Final = exactly(group=nullable(TEXT), name=nullable(TEXT), **_SUMS)
_DAY: Final = some({"day": TEXT, **_SUMS, "groups": listing(_GROUP)}, required=["day", *_SUMS])
DAYS: Final = titled(
    "DailyStatistics",
    exactly(days=COUNT, group_by=nullable(one_of("provider", "model", "key")), data=listing(_DAY)),
)
