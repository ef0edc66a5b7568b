"""Figures over many requests: sums, rates and percentiles, in all and by provider, model, key, combo and outcome.

What nobody knew is None, never 0: a sum is None when no request had the number, a rate when there was nothing to rate.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

SUCCEEDED: Final = "ok"
FAILED: Final = frozenset({"upstream_error", "refused", "truncated"})
"""The others, ``client_error`` and ``cancelled``, are nobody's success or failure but the client's."""
MOST_LISTED: Final = 100
"""Entries of one breakdown: those with the most requests."""


class Group(NamedTuple):
    """What requests have in common. None: no target served, no key, no combo."""

    provider: str | None
    model: str | None
    key_id: str | None
    combo: str | None
    outcome: str


class Cell(NamedTuple):
    """The sums of one group. None: no request of it had the number."""

    group: Group
    key_name: str | None
    requests: int
    attempts: int | None
    failovers: int | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None


class Timing(NamedTuple):
    """How long one request took, and until its first token, in milliseconds."""

    group: Group
    duration_ms: float
    first_token_ms: float | None


class Leaks(NamedTuple):
    """How many attempts at a model wrote their tool call as text, in one spelling and with one end."""

    provider: str
    model: str
    format: str
    action: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Window:
    """What was read of the requests since an instant (unix seconds)."""

    since: float
    """The window is shorter than asked for when there were too many requests: then every figure is about this one."""
    complete: bool
    cells: Sequence[Cell]
    timings: Sequence[Timing]
    """Of the newest requests, a bounded number."""
    leaks: Sequence[Leaks] = ()
    """Of the newest requests with one, the most frequent first."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of times in milliseconds; None without one."""

    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is said of one set of requests. Tokens and cost are those that are known: a lower bound."""

    requests: int
    succeeded: int
    failed: int
    success_rate: float | None
    """Of those that succeeded or failed."""
    attempts: int | None
    attempts_per_request: float | None
    failovers: int | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    duration_ms: Percentiles
    first_token_ms: Percentiles


Names = Mapping[str, str | None]
Breakdown = Sequence[tuple[Names, Figures]]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything about one window."""

    totals: Figures
    by: Mapping[str, Breakdown]
    """By ``provider``, ``model``, ``key``, ``combo`` and ``outcome``, the most requests first."""


DIMENSIONS: Final[Mapping[str, Callable[[Group], tuple[tuple[str, str | None], ...]]]] = {
    "provider": lambda group: (("provider", group.provider),),
    "model": lambda group: (("provider", group.provider), ("model", group.model)),
    "key": lambda group: (("key_id", group.key_id),),
    "combo": lambda group: (("combo", group.combo),),
    "outcome": lambda group: (("outcome", group.outcome),),
}


def report(window: Window) -> Report:
    """Return the figures of *window*."""
    everything = _figures(window.cells, window.timings)
    return Report(everything, {name: _breakdown(window, name) for name in DIMENSIONS})


def rate(succeeded: int, failed: int) -> float | None:
    """Return the share of successes, None when nothing succeeded or failed."""
    return succeeded / (succeeded + failed) if succeeded + failed else None


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the value at *share* (0 to 1) by nearest rank; *values* are sorted. None without a value."""
    return values[max(0, math.ceil(share * len(values)) - 1)] if values else None


@dataclass(slots=True)
class _Part:
    cells: list[Cell] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)


def _breakdown(window: Window, dimension: str) -> Breakdown:
    names_of = DIMENSIONS[dimension]
    parts: defaultdict[tuple[tuple[str, str | None], ...], _Part] = defaultdict(_Part)
    for cell in window.cells:
        parts[names_of(cell.group)].cells.append(cell)
    for timing in window.timings:
        parts[names_of(timing.group)].timings.append(timing)
    requests = {names: sum(cell.requests for cell in part.cells) for names, part in parts.items()}
    listed = sorted(parts, key=lambda names: (-requests[names], str(names)))[:MOST_LISTED]
    return [
        (_named(dict(names), dimension, parts[names]), _figures(parts[names].cells, parts[names].timings))
        for names in listed
    ]


def _named(names: Names, dimension: str, part: _Part) -> Names:
    """Return *names*; a key has its name too, the last of several in the alphabet."""
    if dimension != "key":
        return names
    return {**names, "key_name": max((cell.key_name for cell in part.cells if cell.key_name), default=None)}


def _figures(cells: Sequence[Cell], timings: Sequence[Timing]) -> Figures:
    requests = sum(cell.requests for cell in cells)
    succeeded = sum(cell.requests for cell in cells if cell.group.outcome == SUCCEEDED)
    failed = sum(cell.requests for cell in cells if cell.group.outcome in FAILED)
    attempts = _sum(cell.attempts for cell in cells)
    return Figures(
        requests=requests,
        succeeded=succeeded,
        failed=failed,
        success_rate=rate(succeeded, failed),
        attempts=attempts,
        attempts_per_request=attempts / requests if attempts is not None and requests else None,
        failovers=_sum(cell.failovers for cell in cells),
        input_tokens=_sum(cell.input_tokens for cell in cells),
        output_tokens=_sum(cell.output_tokens for cell in cells),
        cached_tokens=_sum(cell.cached_tokens for cell in cells),
        reasoning_tokens=_sum(cell.reasoning_tokens for cell in cells),
        cost_usd=_cost(cells),
        duration_ms=_percentiles(timing.duration_ms for timing in timings),
        first_token_ms=_percentiles(timing.first_token_ms for timing in timings),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _cost(cells: Iterable[Cell]) -> float | None:
    known = [cell.cost_usd for cell in cells if cell.cost_usd is not None]
    return math.fsum(known) if known else None


def _percentiles(values: Iterable[float | None]) -> Percentiles:
    known = sorted(value for value in values if value is not None)
    return Percentiles(percentile(known, 0.5), percentile(known, 0.95))
