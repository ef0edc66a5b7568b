"""Combos: named chains of specs with a strategy. Two aggregates in SQL (combo, member), one value here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from troyproxy.catalog.providers import Origin

STRATEGY_NAMES: Final = (
    "fallback",
    "priority",
    "weighted",
    "round-robin",
    "context-relay",
    "fill-first",
    "p2c",
    "random",
    "least-used",
    "cost-optimized",
    "reset-aware",
    "strict-random",
    "auto",
    "lkgp",
    "context-optimized",
)
"""Every strategy of the design. What this version can run is `routing.strategies.STRATEGIES`."""


@dataclass(frozen=True, slots=True)
class Member:
    """One link of a chain: a spec ``provider/model`` (perhaps pinned to an account) or another combo."""

    model: str | None = None
    combo: str | None = None
    account: str | None = None
    weight: float = 1.0

    @property
    def label(self) -> str:
        """How the member is written."""
        return self.model if self.model is not None else f"combo/{self.combo}"


@dataclass(frozen=True, slots=True)
class Combo:
    """A named, ordered list of members. `id` is a slug, `name` may be any script; one namespace for both."""

    id: str
    name: str
    strategy: str = "fallback"
    members: tuple[Member, ...] = ()
    config: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    origin: Origin = Origin.FILE
    version: int = 1
    created_at: float = 0.0
