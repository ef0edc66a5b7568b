"""Strategies without memory or measurements: the saved order, and two that draw."""

from __future__ import annotations

import math
from collections.abc import Sequence

from troyproxy.routing.context import Order, RouteContext
from troyproxy.routing.members import Unit


def fallback(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """Saved order; every request starts again at the first eligible member."""
    del ctx
    return Order(tuple(members))


def priority(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """`fallback` under its other name."""
    return fallback(members, ctx)


def random(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """A fresh Fisher-Yates shuffle per request."""
    shuffled = list(members)
    ctx.rng.shuffle(shuffled)
    return Order(tuple(shuffled))


def weighted(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """One draw with p = w/Σw leads; the rest by weight, descending. All weights zero: every member alike."""
    if not members:
        return Order(())
    drawn = _draw([member.weight for member in members], ctx)
    rest = sorted((at for at in range(len(members)) if at != drawn), key=lambda at: -members[at].weight)
    return Order(tuple(members[at] for at in (drawn, *rest)))


def _draw(weights: Sequence[float], ctx: RouteContext) -> int:
    """Return an index by weight. A weight of zero is never drawn while another is above it."""
    total = math.fsum(weights)
    if total <= 0:
        return ctx.rng.randrange(len(weights))
    point, last = ctx.rng.random() * total, 0
    for at, weight in enumerate(weights):
        if weight > 0:
            last = at
            point -= weight
            if point < 0:
                return at
    return last  # rounding left a crumb behind the last one
