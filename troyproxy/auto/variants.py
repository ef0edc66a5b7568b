"""The ``auto`` ids that work without configuration, and the names by which a request picks a mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from troyproxy.auto.weights import DEFAULT, PACKS, Weights

STANDARD_EXPLORATION: Final = 0.05


class Known(StrEnum):
    """What the last known good target means to an order."""

    MARGIN = "margin"
    """First, if its score is near enough to the best."""
    FIRST = "first"
    """First while eligible, whatever its score."""


@dataclass(frozen=True, slots=True)
class Variant:
    """How one ``auto`` id chooses. *exploration* None: the setting's rate."""

    weights: Weights
    exploration: float | None = None
    known: Known = Known.MARGIN


VARIANTS: Final[Mapping[str, Variant]] = MappingProxyType(
    {
        "auto": Variant(DEFAULT),
        "auto/coding": Variant(PACKS["quality-first"]),
        "auto/fast": Variant(PACKS["ship-fast"]),
        "auto/cheap": Variant(PACKS["cost-saver"]),
        "auto/offline": Variant(PACKS["offline-friendly"]),
        "auto/smart": Variant(PACKS["quality-first"], exploration=0.10),
        "auto/lkgp": Variant(DEFAULT, known=Known.FIRST),
    }
)
MODES: Final[Mapping[str, Weights]] = MappingProxyType(
    {
        **PACKS,
        "fast": PACKS["ship-fast"],
        "cheap": PACKS["cost-saver"],
        "quality": PACKS["quality-first"],
        "offline": PACKS["offline-friendly"],
        "balanced": DEFAULT,
        "default": DEFAULT,
        **{name: variant.weights for name, variant in VARIANTS.items()},
        **{name.removeprefix("auto/"): variant.weights for name, variant in VARIANTS.items()},
    }
)
"""What ``x-troy-mode`` may say: a pack, a variant (with or without ``auto/``), or an alias."""


def variant_of(name: str) -> Variant | None:
    """Return the variant called *name*; ``auto/`` is ``auto``."""
    return VARIANTS.get("auto" if name == "auto/" else name)
