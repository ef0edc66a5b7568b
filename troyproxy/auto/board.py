"""A pool as it was scored and ranked.

It says nothing of who may serve now (exclusions, budgets), so it holds as long as what was measured does: whoever keeps
one says for how long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from troyproxy.auto.exclusion import LEAST_SCORE, Place
from troyproxy.auto.factors import Demand, Factors, Standing, cost_usd, factors_of, p95_ms, score
from troyproxy.auto.tiers import EconomicTier, specificity_match
from troyproxy.auto.weights import Weights

_TIERS: Final = tuple(EconomicTier)


@dataclass(frozen=True, slots=True)
class Entry:
    """One candidate of the pool. *identity* is unique in it; *estimate_usd* is the cost of this very request."""

    identity: str
    standing: Standing
    estimate_usd: float | None = None
    place: Place = Place.IN
    back_at: float = 0.0
    """When its exclusion ends; unix seconds, for ordering only."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One candidate as it was judged."""

    identity: str
    factors: Factors
    score: float


@dataclass(frozen=True, slots=True)
class Board:
    """The scores of a pool, in its order, and what follows from them; *ranking* and *low* are places in the pool."""

    scored: tuple[Scored, ...] = ()
    ranking: tuple[int, ...] = ()
    """The best first; of equal scores the cheaper, then the faster, then the earlier in the pool."""
    low: frozenset[int] = field(default_factory=frozenset)
    """Who scores too low to serve. A sole candidate never does."""


Judge = Callable[[Sequence[Entry], Demand, Weights], Board]
"""Scores a pool."""


def board_of(pool: Sequence[Entry], demand: Demand, weights: Weights) -> Board:
    """Return *pool* scored by *weights* for a request with this *demand*."""
    factors = factors_of([entry.standing for entry in pool], demand)
    scored = tuple(Scored(e.identity, f, score(weights, f)) for e, f in zip(pool, factors, strict=True))

    def rank(at: int) -> tuple[float, float, float, int]:
        standing = pool[at].standing
        return -scored[at].score, cost_usd(standing), p95_ms(standing), at

    low = (at for at, one in enumerate(scored) if one.score < LEAST_SCORE and len(scored) > 1)
    return Board(scored, tuple(sorted(range(len(pool)), key=rank)), frozenset(low))


def kind_of(demand: Demand) -> tuple[object, ...]:
    """Return what of *demand* the factors see: demands of one kind give the same scores."""
    return (demand.tier, *(specificity_match(tier, demand.specificity) for tier in _TIERS))
