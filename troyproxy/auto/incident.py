"""Incident mode: when most providers of a pool are down, stop experimenting and weigh steadiness and health more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from troyproxy.auto.weights import Weights, normalised
from troyproxy.resilience.breaker import CircuitState

STABILITY_TIMES: Final = 3.0
HEALTH_TIMES: Final = 1.5


def incident(pool: Iterable[tuple[str, CircuitState]]) -> bool:
    """Whether more than half of the distinct providers of *pool* are open; (provider, circuit) per candidate.

    A provider is open when every candidate it has in the pool is.
    """
    shut: dict[str, bool] = {}
    for provider, circuit in pool:
        shut[provider] = shut.get(provider, True) and circuit is CircuitState.OPEN
    return sum(shut.values()) * 2 > len(shut)


def in_incident(weights: Weights) -> Weights:
    """Return *weights* as they are during an incident; what weighs nothing stays at nothing."""
    raised = {
        **weights,
        "stability": weights["stability"] * STABILITY_TIMES,
        "health": weights["health"] * HEALTH_TIMES,
    }
    return normalised(raised)
