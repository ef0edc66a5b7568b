"""What is known of a model: capabilities, limits and prices. `None` always means unknown, never "no"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class ToolCalls(StrEnum):
    """How a model delivers tool calls: structured every time, or now and then as text."""

    RELIABLE = "reliable"
    DRIFTS = "drifts"


EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Every reasoning effort level, weakest first."""

DEFAULT_EFFORTS: Final = ("low", "medium", "high")
"""What a reasoning model takes unless it declares otherwise."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model takes and does; each True, False or None (unknown)."""

    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    json: bool | None = None
    audio: bool | None = None

    def over(self, base: Capabilities) -> Capabilities:
        """Return these capabilities, with *base* filling what is unknown here."""
        mine = ((f.name, getattr(self, f.name)) for f in fields(self))
        return Capabilities(**{name: getattr(base, name) if value is None else value for name, value in mine})


@dataclass(frozen=True, slots=True)
class Limits:
    """Context window and longest output, in tokens."""

    context: int | None = None
    output: int | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """USD per one million tokens."""

    input: float | None = None
    output: float | None = None
    cached: float | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """One model of one provider, after the file's overrides were laid over the catalogue."""

    id: str
    capabilities: Capabilities = Capabilities()
    limits: Limits = Limits()
    price: Price = Price()
    tool_calls: ToolCalls | None = None
    efforts: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    no_sampling_with_effort: bool = False
    """The model refuses ``temperature`` and ``top_p`` beside a reasoning effort."""
    no_effort: bool = False
    """The model reasons as it likes: it takes no effort, whatever the level."""
    tier: str | None = None
    """Economic tier, ``free``, ``cheap`` or ``premium``, instead of what the price says."""
    fitness: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """How well it does tasks, 0 to 1 by task, instead of what the table says."""

    @property
    def effort_levels(self) -> tuple[str, ...]:
        """The levels this model takes, weakest first."""
        return self.efforts or DEFAULT_EFFORTS


@dataclass(frozen=True, slots=True)
class Override:
    """What an operator knows better of one model, ``provider/model``, than the catalogue does."""

    spec: str
    model: Model
    version: int = 0
    """Counts the writes of one that lives in the database; 0 elsewhere."""


UNKNOWN: Final = Model(id="")
"""Stands for a model that no list knows: nothing is known of it."""
