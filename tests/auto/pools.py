"""The golden pool of the design, and short ways to entries."""

from __future__ import annotations

from typing import Final

from troyproxy.auto.decision import Entry
from troyproxy.auto.exclusion import Place
from troyproxy.auto.factors import Demand, Factors, Standing, factors_of, score
from troyproxy.auto.weights import Weights
from troyproxy.resilience.breaker import CircuitState

A: Final = Standing(
    quota=1.0, input_usd=5.5, samples=20, p95_ms=2000, sigma_ms=200, account_tier="pro", fitness=0.90, error_rate=0.0
)
B: Final = Standing(
    quota=0.6, input_usd=0.602, samples=20, p95_ms=3000, sigma_ms=600, account_tier="standard", fitness=0.84
)
C: Final = Standing(
    circuit=CircuitState.HALF_OPEN,
    quota=0.2,
    input_usd=0.33,
    samples=20,
    p95_ms=1000,
    sigma_ms=100,
    account_tier="free",
    fitness=0.82,
)
POOL: Final = (A, B, C)


def golden_factors() -> list[Factors]:
    """Return the factors of the golden pool, with affinity and specificity neutral as the design has it."""
    neutral = {"specificityMatch": 0.5, "tierAffinity": 0.5}
    return [{**factors, **neutral} for factors in factors_of(POOL, Demand())]


def golden_scores(weights: Weights) -> list[float]:
    """Return the scores of the golden pool."""
    return [score(weights, factors) for factors in golden_factors()]


def entry(
    name: str,
    standing: Standing = A,
    *,
    usd: float | None = None,
    place: Place = Place.IN,
    back_at: float = 0.0,
) -> Entry:
    """Return a candidate called *name*."""
    return Entry(name, standing, usd, place, back_at)
