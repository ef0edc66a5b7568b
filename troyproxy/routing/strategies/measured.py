"""Strategies that go by what is measured or known of the members: load, luck and speed, price, window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from troyproxy.routing.context import Order, RouteContext
from troyproxy.routing.members import Unit, leaves
from troyproxy.routing.readings import Reading, reading_of

UNKNOWN_SUCCESS: Final = 0.5
UNKNOWN_SPEED: Final = 0.25
HALF_OPEN_MALUS: Final = 0.25


def p2c(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """Power of two choices: of two drawn, the less busy leads, then the better one; the rest in saved order."""
    if len(members) < 2:
        return Order(tuple(members))
    drawn = ctx.rng.sample(range(len(members)), 2)
    readings = {at: reading_of(members[at], ctx.read) for at in drawn}
    first, second = sorted(drawn, key=lambda at: (readings[at].inflight, -promise(readings[at])))
    rest = (at for at in range(len(members)) if at not in drawn)
    return Order(tuple(members[at] for at in (first, second, *rest)))


def promise(reading: Reading) -> float:
    """Return how good a member promises to be: its success rate and its speed, less while it is half-open."""
    luck = UNKNOWN_SUCCESS if reading.success_rate is None else reading.success_rate
    speed = UNKNOWN_SPEED if reading.p50_ms is None else 1 / math.log10(max(0.0, reading.p50_ms) + 10)
    return luck + speed - (HALF_OPEN_MALUS if reading.half_open else 0.0)


def least_used(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """The one that carries least leads, then the one with fewer requests in the last hour, then the longest idle."""

    def use(unit: Unit) -> tuple[int, int, float]:
        reading = reading_of(unit, ctx.read)
        return reading.inflight, reading.recent, reading.last_used_at

    return Order(tuple(sorted(members, key=use)))


def cost_optimized(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """The cheapest for this request leads: free ones first, unknown prices last."""

    def price(unit: Unit) -> float:
        cost = reading_of(unit, ctx.read).cost_usd
        return math.inf if cost is None else cost

    return Order(tuple(sorted(members, key=price)))


def context_optimized(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """The smallest window that fits leads; then unknown windows; then those too small, the largest first."""

    def fit(unit: Unit) -> tuple[int, int]:
        window = _window(unit)
        if window is None:
            return 1, 0
        return (0, window) if window >= ctx.tokens else (2, -window)

    return Order(tuple(sorted(members, key=fit)))


def _window(unit: Unit) -> int | None:
    """Return the context window of a member; of a combo the largest one known in it."""
    known = [leaf.facts.limits.context for leaf in leaves(unit) if leaf.facts.limits.context is not None]
    return max(known, default=None)
