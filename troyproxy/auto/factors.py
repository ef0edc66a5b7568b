"""The nine factors of a candidate, each in [0, 1], from what is known of it and of the pool it stands in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from troyproxy.auto import tiers
from troyproxy.auto.tiers import EconomicTier
from troyproxy.auto.weights import FACTORS, Weights
from troyproxy.resilience.breaker import CircuitState

Factors = Mapping[str, float]
"""A value in [0, 1] for each of `FACTORS`."""

HEALTH: Final[Mapping[CircuitState, float]] = MappingProxyType(
    {CircuitState.CLOSED: 1.0, CircuitState.HALF_OPEN: 0.5, CircuitState.OPEN: 0.0}
)
LEAST_COST_USD, LEAST_LATENCY_MS, LEAST_SIGMA_MS = 0.001, 1.0, 0.001
"""Floors of the pool maxima: nothing is divided by zero."""
UNKNOWN_COST_USD: Final = 1.0
BOOTSTRAP_P95_MS: Final = 1500.0
KNOWN_FROM, TRUSTED_FROM = 3, 10
"""Latency samples from which a p95 exists, and from which its spread is believed."""
SIGMA_FLOOR_MS: Final = 10.0
INPUT_SHARE, OUTPUT_SHARE = 0.6, 0.4


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of one candidate, for one request. None = unknown."""

    circuit: CircuitState = CircuitState.CLOSED
    quota: float | None = None
    """Smallest remaining fraction over the windows that are known."""
    input_usd: float | None = None
    """Price per million tokens, as `output_usd`."""
    output_usd: float | None = None
    samples: int = 0
    """Latencies measured in the last 24 h, behind the next two."""
    p95_ms: float | None = None
    sigma_ms: float | None = None
    error_rate: float | None = None
    fitness: float = 0.5
    model_tier: EconomicTier = EconomicTier.PREMIUM
    account_tier: str = "standard"
    reset_interval_s: float | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """What the request asks of a model, beyond hard needs. *specificity* is 0 to 100."""

    specificity: float = 0.0
    tier: EconomicTier = EconomicTier.FREE


def cost_usd(standing: Standing) -> float:
    """Return the blended price of a million tokens; output is as dear as input where it is not known."""
    if standing.input_usd is None:
        return UNKNOWN_COST_USD
    output = standing.input_usd if standing.output_usd is None else standing.output_usd
    return INPUT_SHARE * standing.input_usd + OUTPUT_SHARE * output


def p95_ms(standing: Standing) -> float:
    """Return the latency that is reckoned with."""
    known = standing.samples >= KNOWN_FROM and standing.p95_ms is not None
    return standing.p95_ms if known and standing.p95_ms is not None else BOOTSTRAP_P95_MS


def sigma_ms(standing: Standing) -> float:
    """Return the spread of the latency that is reckoned with."""
    if standing.samples < TRUSTED_FROM or standing.sigma_ms is None:
        return max(SIGMA_FLOOR_MS, 0.1 * p95_ms(standing))
    return max(SIGMA_FLOOR_MS, standing.sigma_ms)


def factors_of(pool: Sequence[Standing], demand: Demand) -> list[Factors]:
    """Return the factors of each candidate of *pool*, in its order. One pass over the pool for its maxima."""
    costs, p95s, sigmas = ([measure(s) for s in pool] for measure in (cost_usd, p95_ms, sigma_ms))
    most = (_most(costs, LEAST_COST_USD), _most(p95s, LEAST_LATENCY_MS), _most(sigmas, LEAST_SIGMA_MS))
    measured = zip(pool, costs, p95s, sigmas, strict=True)
    return [_factors(standing, demand, (cost, p95, sigma), most) for standing, cost, p95, sigma in measured]


def score(weights: Weights, factors: Factors) -> float:
    """Return Σ weight · factor in [0, 1]; what is not a number counts 0."""
    total = math.fsum(weights[name] * value for name, value in factors.items() if not math.isnan(value))
    return min(1.0, max(0.0, total))


def _factors(
    standing: Standing, demand: Demand, measured: tuple[float, float, float], most: tuple[float, float, float]
) -> Factors:
    cost, p95, sigma = (min(1.0, value / peak) for value, peak in zip(measured, most, strict=True))
    error_rate = standing.error_rate or 0.0
    values = (
        HEALTH[standing.circuit],
        1.0 if standing.quota is None else standing.quota,
        1.0 - cost,
        1.0 - p95,
        standing.fitness,
        tiers.specificity_match(standing.model_tier, demand.specificity),
        (1.0 - sigma) * (1.0 - error_rate),
        tiers.tier_priority(standing.account_tier, standing.reset_interval_s),
        tiers.tier_affinity(standing.model_tier, demand.tier),
    )
    return dict(zip(FACTORS, map(_within, values), strict=True))


def _within(value: float) -> float:
    return value if math.isnan(value) else min(1.0, max(0.0, value))


def _most(values: Iterable[float], floor: float) -> float:
    return max([floor, *(value for value in values if math.isfinite(value))])
