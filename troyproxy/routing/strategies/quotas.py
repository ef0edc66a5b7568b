"""Strategies that go by quotas: use one account up before the next, or use what will be reset soonest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from troyproxy.routing.context import Cursor, Effect, Order, RouteContext
from troyproxy.routing.members import Unit
from troyproxy.routing.readings import NEARLY_EMPTY, Quota, Reading, full_until, reading_of
from troyproxy.routing.strategies.turns import next_stop

SESSION_S: Final = 86_400.0
"""Windows up to a day count as sessions, longer ones as weekly."""
SESSION_WEIGHT, WEEKLY_WEIGHT = 0.35, 0.65
UNKNOWN_VALUE: Final = 0.5
SHORT: Final = 0.10
"""A session with less than this left loses value fast."""
LEAST_SHARE: Final = 0.05
NEAR: Final = 0.05
"""Within this of the best value the choice rotates."""


def fill_first(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """Saved order; accounts that are full go to the tail, by earliest reset, and come back by themselves."""
    ends = {unit.identity: full_until(reading_of(unit, ctx.read)) for unit in members}
    free = [unit for unit in members if ends[unit.identity] is None]
    full = [unit for unit in members if ends[unit.identity] is not None]
    return Order((*free, *sorted(full, key=lambda unit: ends[unit.identity] or 0.0)))


def reset_aware(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """The most valuable quota leads: much left, and soon reset. Near the best the choice rotates; used up goes last."""
    if not members:
        return Order(())
    readings = {unit.identity: reading_of(unit, ctx.read) for unit in members}
    worth = {name: reset_value(reading, ctx.now) for name, reading in readings.items()}
    best = max(worth.values())
    ranked = sorted(members, key=lambda unit: -worth[unit.identity])
    near = {unit.identity: unit for unit in members if worth[unit.identity] >= best - NEAR}
    if best < 0:  # everything is used up: the earliest reset first
        return Order(tuple(sorted(members, key=lambda unit: full_until(readings[unit.identity]) or 0.0)))
    first, left = next_stop(near, ctx)
    rest = (unit for unit in ranked if unit.identity != first)
    return Order((near[first], *rest), (Effect(ctx.combo_id, Cursor(first, left)),))


def reset_value(reading: Reading, now: float) -> float:
    """Return what the quota of an account is worth now, 0 to 1; below zero: used up."""
    if reading.barred_until is not None or any(quota.remaining <= NEARLY_EMPTY for quota in reading.quotas):
        return -1.0
    if not reading.quotas:
        return UNKNOWN_VALUE
    shares = [_weight(quota) for quota in reading.quotas]
    parts = [share * _worth(quota, now) for share, quota in zip(shares, reading.quotas, strict=True)]
    value = math.fsum(parts) / math.fsum(shares)
    session = min((quota.remaining for quota in reading.quotas if _weight(quota) == SESSION_WEIGHT), default=1.0)
    return value * max(LEAST_SHARE, session / SHORT) if session < SHORT else value


def _weight(quota: Quota) -> float:
    return SESSION_WEIGHT if quota.length_s is not None and quota.length_s <= SESSION_S else WEEKLY_WEIGHT


def _worth(quota: Quota, now: float) -> float:
    return 0.4 * quota.remaining + 0.6 * quota.remaining * _urgency(quota, now)


def _urgency(quota: Quota, now: float) -> float:
    """Return how soon the window is reset, 0 to 1; without a known reset it is not urgent."""
    if quota.reset_at is None or quota.length_s is None or quota.length_s <= 0:
        return 0.0
    return min(1.0, max(0.0, 1.0 - (quota.reset_at - now) / quota.length_s))
