"""The nine weights: the default, the packs that replace them whole, and what a combo's own weights become.

The table of the design is the authority: every set sums to 1. Names are those of the API, in its spelling.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

Weights = Mapping[str, float]
"""A weight for each of `FACTORS`; they sum to 1."""

FACTORS: Final = (
    "health",
    "quota",
    "costInv",
    "latencyInv",
    "taskFit",
    "specificityMatch",
    "stability",
    "tierPriority",
    "tierAffinity",
)
MOST: Final = 1e300
"""More than any weight can mean, and less than what overflows."""
SUM_SLACK: Final = 1e-6
"""Given weights whose sum is this near to 1 are a whole set, not overrides."""


def _weights(**given: float) -> Weights:
    return MappingProxyType({name: given.get(name, 0.0) for name in FACTORS})


DEFAULT: Final = _weights(
    health=0.22,
    quota=0.17,
    costInv=0.17,
    latencyInv=0.13,
    taskFit=0.08,
    specificityMatch=0.08,
    stability=0.05,
    tierPriority=0.05,
    tierAffinity=0.05,
)
PACKS: Final[Mapping[str, Weights]] = MappingProxyType(
    {
        "ship-fast": _weights(
            quota=0.15, health=0.30, costInv=0.05, latencyInv=0.35, taskFit=0.10, stability=0.0, tierPriority=0.05
        ),
        "cost-saver": _weights(
            quota=0.15, health=0.20, costInv=0.40, latencyInv=0.05, taskFit=0.10, stability=0.05, tierPriority=0.05
        ),
        "quality-first": _weights(
            quota=0.10, health=0.20, costInv=0.05, latencyInv=0.05, taskFit=0.40, stability=0.15, tierPriority=0.05
        ),
        "offline-friendly": _weights(
            quota=0.40, health=0.30, costInv=0.10, latencyInv=0.05, taskFit=0.0, stability=0.10, tierPriority=0.05
        ),
    }
)


class BadWeights(Exception):
    """Weights that cannot be used. *problems*: name of the weight ("" = the whole) → what is wrong with it."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" for name, text in problems.items()))
        self.problems = problems


def effective(given: Mapping[str, object], *, base: Weights = DEFAULT) -> Weights:
    """Return the weights in force for those *given* in a combo.

    A set that sums to 1 is taken whole, absent ones being 0; anything else is laid over *base* and renormalised.
    Raises BadWeights for unknown names, negative or non-finite numbers, and when nothing is above zero.
    """
    if not given:
        return base
    checked = _checked(given)
    total = sum(checked.values())
    laid = {name: checked.get(name, 0.0) for name in FACTORS}
    if abs(total - 1.0) > SUM_SLACK:
        laid = {name: checked.get(name, base[name]) for name in FACTORS}
    return normalised(laid)


def normalised(weights: Mapping[str, float]) -> Weights:
    """Return *weights* scaled to sum to 1. They must not all be zero."""
    most = max(weights.values())
    scaled = {name: weights[name] / most for name in FACTORS}  # first, so that huge weights do not overflow the sum
    total = math.fsum(scaled.values())
    return MappingProxyType({name: value / total for name, value in scaled.items()})


def _checked(given: Mapping[str, object]) -> dict[str, float]:
    problems: dict[str, str] = {}
    checked: dict[str, float] = {}
    for name, value in given.items():
        if name not in FACTORS:
            problems[name] = f"is no factor; allowed: {', '.join(FACTORS)}"
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST:
            problems[name] = "must be a finite number from 0"
        else:
            checked[name] = float(value)
    if not problems and checked and not any(checked.values()):
        problems[""] = "at least one weight must be above zero"
    if problems:
        raise BadWeights(problems)
    return checked
