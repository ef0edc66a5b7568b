"""Strategies that begin where it went well before: the last known good target, or a session's last one."""

from __future__ import annotations

from collections.abc import Sequence

from troyproxy.routing.context import Order, RouteContext
from troyproxy.routing.members import Unit


def lkgp(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """The last known good target leads while it is eligible; the rest in saved order."""
    ahead = [unit for unit in members if unit.identity == ctx.last]
    return Order((*ahead, *(unit for unit in members if unit.identity != ctx.last)))


def context_relay(members: Sequence[Unit], ctx: RouteContext) -> Order:
    """`priority`, but the session's last target leads while it is eligible. The hand-off is the walk's."""
    return lkgp(members, ctx)
