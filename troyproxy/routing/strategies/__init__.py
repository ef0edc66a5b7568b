"""Strategies: pure functions ``(members, ctx) → Order``. They see eligible members and plain numbers, nothing else.

What a strategy wants remembered comes back as an effect, which the planner applies at once, before the walk: so two
concurrent plans differ, and failing over moves nothing. `proxy` adds the strategies that need more than this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from troyproxy.routing.members import Unit


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a combo's circle stands: the member that led the last plan, and how many plans it has left there."""

    at: str
    left: int = 0


@dataclass(frozen=True, slots=True)
class CursorMoved:
    """Effect: the circle of *combo_id* now stands at the member with identity *at*, for *left* more plans."""

    combo_id: str
    at: str
    left: int


Effect = CursorMoved


@dataclass(frozen=True, slots=True)
class Order:
    """The same members in the order to try them, and what to remember."""

    members: tuple[Unit, ...]
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class RouteContext:
    """What a strategy may look at. *now* is unix seconds; *rng* is seeded per request."""

    now: float
    rng: Random
    combo_id: str = ""
    cursor: Cursor | None = None
    sticky: int = 1
    """Plans per stop of a round-robin."""
    circle: tuple[str, ...] = ()
    """Identities of all members in saved order, those that are not eligible now included."""


Strategy = Callable[[Sequence[Unit], RouteContext], Order]


def fallback(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """Saved order; every request starts again at the first eligible member."""
    del ctx
    return Order(tuple(members))


def priority(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """`fallback` under its other name."""
    return fallback(members, ctx)


def round_robin(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """The circle, from the stop after the last plan's; a stop is kept for `sticky` plans.

    The place is a member's identity, looked up in the whole circle: members that are added, removed or not eligible
    for one request do not throw the others out of turn.
    """
    if not members:
        return Order(())
    by_identity = {unit.identity: unit for unit in members}
    first, left = _next_stop(by_identity, ctx)
    names = list(by_identity)
    start = names.index(first)
    turned = tuple(by_identity[name] for name in names[start:] + names[:start])
    return Order(turned, (CursorMoved(ctx.combo_id, first, left),))


def random(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """A fresh Fisher-Yates shuffle per request."""
    shuffled = list(members)
    ctx.rng.shuffle(shuffled)
    return Order(tuple(shuffled))


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "fallback": fallback,
    "priority": priority,
    "round-robin": round_robin,
    "random": random,
}
"""Every strategy of this layer by its configured name."""


def strategy_named(name: str) -> Strategy:
    """Return the strategy; an unknown stored name behaves as `fallback` (the API refuses it at write time)."""
    return STRATEGIES.get(name, fallback)


def _next_stop(eligible: Mapping[str, Unit], ctx: RouteContext) -> tuple[str, int]:
    """Return the identity that leads the next plan, and the plans it has left after that."""
    cursor = ctx.cursor
    if cursor is not None and cursor.left > 0 and cursor.at in eligible:
        return cursor.at, min(cursor.left, ctx.sticky) - 1
    circle = ctx.circle or tuple(eligible)
    after = circle.index(cursor.at) + 1 if cursor is not None and cursor.at in circle else 0
    turned = circle[after:] + circle[:after]
    return next(name for name in turned if name in eligible), ctx.sticky - 1
