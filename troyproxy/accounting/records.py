"""What is kept of a request and of each of its attempts. Plain data: no prompt, no completion, no secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from troyproxy.accounting.usage import Usage


class AttemptRecord(msgspec.Struct, gc=False):
    """One upstream attempt, as it is kept with the usage row.

    Written by the walk while the attempt lasts; from its end on it is replaced and not changed.
    """

    provider: str
    model: str
    account: str
    """The account's name."""
    outcome: str
    """``ok`` or an error class."""
    status: int | None
    started_at: float
    duration_ms: float
    reason: str = ""
    hint_s: float | None = None
    usage: Usage | None = None
    cooldown_s: float | None = None
    """What a class locks for, flat and before jitter; None where the level says it, or nothing is locked."""
    handoff: bool = False
    """It asked for the summary of a hand-off, not for the answer."""
    leak: str = ""
    """The spelling of a tool call that came as text, and what was done about it: ``F01;repaired``."""


class Traced(msgspec.Struct, frozen=True, gc=False):
    """Where a request stands in its trace (W3C Trace Context), when spans are made. Ids are hexadecimal digits."""

    trace_id: str
    span_id: str
    """Of the request's own span."""
    parent_id: str | None = None
    """Of the caller's span; None: the trace begins here."""
    sampled: bool = True
    state: str = ""
    """The caller's ``tracestate``, passed on as it is."""


def failovers(attempts: Sequence[AttemptRecord]) -> int:
    """Return how often the walk left one provider for another."""
    answers = (attempt for attempt in attempts if not attempt.handoff)
    return sum(before.provider != after.provider for before, after in pairwise(answers))


def leaks(attempts: Sequence[AttemptRecord]) -> int:
    """Return how many attempts wrote a tool call as text."""
    return sum(bool(attempt.leak) for attempt in attempts)


class UsageRow(msgspec.Struct, kw_only=True, gc=False):
    """Everything that is recorded of one request. No prompt, no completion, no secret.

    Nobody changes one that is made. Who makes it sets what is not the same for most requests field by field: a call
    with more than fourteen named arguments takes five times as long.
    """

    request_id: str
    at: float
    """When the request arrived, unix seconds."""
    route: str
    key_id: str | None
    key_name: str | None
    requested_model: str
    combo: str | None
    strategy: str | None
    stream: bool
    status: int
    outcome: str
    """``ok``, ``client_error``, ``refused``, ``upstream_error``, ``cancelled`` or ``truncated``."""
    provider: str | None = None
    model: str | None = None
    account: str | None = None
    attempts: tuple[AttemptRecord, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    """(spec, reason) pairs."""
    seed: int = 0
    needs: Mapping[str, object] = msgspec.field(default_factory=dict)
    est_tokens: int = 0
    usage: Usage | None = None
    wasted: Usage | None = None
    cost_usd: float | None = None
    duration_ms: float = 0.0
    overhead_ms: float | None = None
    first_token_ms: float | None = None
    trail: str = ""
    adapted: str = ""
    trace_id: str | None = None
    """The W3C trace it belongs to, 32 hexadecimal digits; for exemplars, not stored."""
    traced: Traced | None = None
    """Its place in that trace; None while no spans are made. Not stored."""
