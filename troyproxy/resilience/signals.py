"""How much of its limits an upstream says is left, read from the rate-limit headers of any answer.

Vendors spell the same thing in many ways: ``x-ratelimit-remaining-requests``, ``anthropic-ratelimit-tokens-remaining``,
``x-ratelimit-reset-requests-day``, ``anthropic-ratelimit-unified-5h-utilization``, ``x-codex-primary-used-percent``.
The words between are the bucket's name, in whatever order they come. What does not say both is no signal: unknown stays
unknown, and never becomes zero.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from troyproxy.resilience.hints import VALUE_CHARS, wait_from

MOST_HEADERS: Final = 64
"""Rate-limit headers of one answer that are looked at."""
LONGEST_NAME: Final = 100
_NUMBER: Final = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,9})?")
_FAMILY: Final = re.compile(r"(?:x-|anthropic-)?ratelimit-|x-codex-")
_KINDS: Final = frozenset({"limit", "remaining", "reset", "utilization", "used"})
_FILLERS: Final = frozenset({"after", "seconds", "percent", "at", "window", "minutes", "status"})
LENGTHS_S: Final[Mapping[str, float]] = MappingProxyType(
    {
        "second": 1.0,
        "minute": 60.0,
        "hour": 3600.0,
        "5h": 18_000.0,
        "day": 86_400.0,
        "7d": 604_800.0,
        "week": 604_800.0,
        "month": 2_592_000.0,
    }
)
"""Lengths of windows that a bucket's name tells, in seconds."""


@dataclass(frozen=True, slots=True)
class Signal:
    """What an upstream said of one bucket. *remaining* is a fraction, 0 to 1; *reset_at* unix seconds."""

    bucket: str
    remaining: float
    reset_at: float | None
    length_s: float | None
    at: float
    """When it was said."""
    limit: float | None = field(default=None, compare=False)
    """Of how much that is a fraction, where the upstream said so."""
    left: float | None = field(default=None, compare=False)
    """How much is left, in the upstream's own number."""


def read_signals(headers: Sequence[tuple[bytes, bytes]], now: float) -> tuple[Signal, ...]:
    """Return the signals in *headers*, one for each bucket that tells how much is left. Never raises."""
    return tuple(signal for signal in told_of(headers, now).values() if signal is not None)


def told_of(headers: Sequence[tuple[bytes, bytes]], now: float) -> Mapping[str, Signal | None]:
    """Return the same by bucket; None for one of which something is left, but not of how much. Never raises."""
    buckets: dict[str, dict[str, str]] = {}
    told = (pair for pair in headers if b"ratelimit" in pair[0].lower() or b"codex" in pair[0].lower())
    for _, (name, value) in zip(range(MOST_HEADERS), told, strict=False):
        _sort(name.decode("latin-1").lower()[:LONGEST_NAME], value.decode("latin-1").strip()[:VALUE_CHARS], buckets)
    found = ((bucket, facts, _signal(bucket, facts, now)) for bucket, facts in buckets.items())
    return {bucket: signal for bucket, facts, signal in found if signal is not None or _number(facts, "remaining")}


def _sort(name: str, value: str, buckets: dict[str, dict[str, str]]) -> None:
    """Put one header to its bucket, under the kind of thing it tells."""
    family = _FAMILY.match(name)
    if family is None:
        return
    words = name[family.end() :].split("-")
    kind = next((word for word in words if word in _KINDS), "length" if "window" in words else None)
    if kind is not None:
        bucket = "-".join(word for word in words if word not in _KINDS | _FILLERS) or "requests"
        buckets.setdefault(bucket, {}).setdefault(kind, value)


def _signal(bucket: str, facts: Mapping[str, str], now: float) -> Signal | None:
    remaining = _remaining(facts)
    if remaining is None:
        return None
    wait_s = wait_from(facts.get("reset", ""), now)
    return Signal(
        bucket=bucket,
        remaining=min(1.0, max(0.0, remaining)),
        reset_at=None if wait_s is None else now + wait_s,
        length_s=_length_s(bucket, facts),
        at=now,
        limit=_number(facts, "limit"),
        left=_number(facts, "remaining"),
    )


def _remaining(facts: Mapping[str, str]) -> float | None:
    limit, left = _number(facts, "limit"), _number(facts, "remaining")
    if left is not None and limit:
        return left / limit
    if left == 0:
        return 0.0
    if (share := _number(facts, "utilization")) is not None:
        return 1.0 - share
    used = _number(facts, "used")
    return None if used is None else 1.0 - used / 100


def _length_s(bucket: str, facts: Mapping[str, str]) -> float | None:
    minutes = _number(facts, "length")
    if minutes:
        return minutes * 60
    return next((LENGTHS_S[word] for word in bucket.split("-") if word in LENGTHS_S), None)


def _number(facts: Mapping[str, str], kind: str) -> float | None:
    value = facts.get(kind, "")
    return float(value) if _NUMBER.fullmatch(value) else None
