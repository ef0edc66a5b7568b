"""Strategies: pure functions ``(members, ctx) → Order``. They see eligible members and plain numbers, nothing else.

Ties keep the saved order unless a strategy says otherwise. `proxy` adds ``auto`` to the table, which needs more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from troyproxy.routing.context import Strategy
from troyproxy.routing.strategies.fixed import fallback, priority, random, weighted
from troyproxy.routing.strategies.measured import context_optimized, cost_optimized, least_used, p2c
from troyproxy.routing.strategies.quotas import fill_first, reset_aware
from troyproxy.routing.strategies.remembered import context_relay, lkgp
from troyproxy.routing.strategies.turns import round_robin, strict_random

__all__ = ["BY_ACCOUNT", "DRAWING", "FIXED", "STRATEGIES", "TO_LEAVES", "fallback"]

STRATEGIES: Final[Mapping[str, Strategy]] = {
    "fallback": fallback,
    "priority": priority,
    "weighted": weighted,
    "round-robin": round_robin,
    "context-relay": context_relay,
    "fill-first": fill_first,
    "p2c": p2c,
    "random": random,
    "least-used": least_used,
    "cost-optimized": cost_optimized,
    "reset-aware": reset_aware,
    "strict-random": strict_random,
    "lkgp": lkgp,
    "context-optimized": context_optimized,
}
"""Every strategy of this layer by its configured name."""

BY_ACCOUNT: Final = frozenset({"fill-first", "p2c", "least-used", "reset-aware", "lkgp", "context-relay", "auto"})
"""Strategies that choose between accounts: a member without a pinned one stands for each of its provider's."""
TO_LEAVES: Final = frozenset(
    {"auto", "cost-optimized", "context-optimized", "fill-first", "reset-aware", "p2c", "least-used"}
)
"""Strategies that go by measures of single models: combos inside them are taken apart first."""
FIXED: Final = frozenset({"fallback", "priority"})
"""Strategies that look at nothing but the saved order: two plans for the same members are equal."""
DRAWING: Final = frozenset({"auto", "p2c", "random", "strict-random", "weighted"})
"""Strategies that draw from ``rng``; for the others none need be seeded."""
