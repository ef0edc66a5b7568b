"""The two kinds of tier. An *account tier* is what is paid for; an *economic tier* is what a model costs to call."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

CHEAP_UP_TO_USD: Final = 1.0
"""Input price, USD per million tokens, up to which a model is cheap."""
ACCOUNT_TIERS: Final[Mapping[str, float]] = MappingProxyType({"ultra": 1.0, "pro": 0.67, "standard": 0.33, "free": 0.0})
LONGEST_RESET_S: Final = 30 * 86_400.0
AFFINITY: Final = (1.0, 0.7, 0.3)
"""By the steps between a model's tier and the recommended one."""


class EconomicTier(StrEnum):
    """What a model costs, coarsely, in rising order."""

    FREE = "free"
    CHEAP = "cheap"
    PREMIUM = "premium"


_STEPS: Final = tuple(EconomicTier)


def account_tier(tier: str | None, *, keyless: bool) -> str:
    """Return the tier of an account: its own, else free where no key is needed, else standard."""
    return tier or ("free" if keyless else "standard")


def economic_tier(input_price: float | None, *, override: str | None = None) -> EconomicTier:
    """Return the tier of a model by its input price (USD per million tokens); an unknown price is premium."""
    if override is not None:
        return EconomicTier(override)
    if input_price is None:
        return EconomicTier.PREMIUM
    if input_price <= 0:
        return EconomicTier.FREE
    return EconomicTier.CHEAP if input_price <= CHEAP_UP_TO_USD else EconomicTier.PREMIUM


def recommended_tier(specificity: float, *, tools: bool) -> EconomicTier:
    """Return the tier that a request of this *specificity* (0 to 100) deserves; tools need at least a cheap model."""
    if specificity > 65:
        return EconomicTier.PREMIUM
    return EconomicTier.CHEAP if tools or specificity > 20 else EconomicTier.FREE


def tier_priority(tier: str, reset_interval_s: float | None) -> float:
    """Return the factor of an account *tier*: better paid first, and those that reset soon a little before."""
    bonus = 0.0 if reset_interval_s is None else max(0.0, 1.0 - reset_interval_s / LONGEST_RESET_S)
    return 0.8 * ACCOUNT_TIERS.get(tier, ACCOUNT_TIERS["standard"]) + 0.2 * bonus


def tier_affinity(tier: EconomicTier, recommended: EconomicTier) -> float:
    """Return how near a model's *tier* is to the *recommended* one."""
    return AFFINITY[abs(_STEPS.index(tier) - _STEPS.index(recommended))]


def specificity_match(tier: EconomicTier, specificity: float) -> float:
    """Return how well a model's *tier* suits a request of this *specificity*."""
    match tier:
        case EconomicTier.FREE:
            return 0.9 if specificity <= 15 else 0.2
        case EconomicTier.CHEAP:
            return 0.9 if 15 < specificity <= 50 else 0.4
        case _:
            return 0.9 if specificity > 50 else 0.3
