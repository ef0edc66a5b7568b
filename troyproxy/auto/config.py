"""``config.auto`` of a stored combo: what may stand in it, and the rules it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from troyproxy.auto.variants import MODES
from troyproxy.auto.weights import DEFAULT, PACKS, BadWeights, Weights, effective

FIELDS: Final = ("candidatePool", "weights", "modePack", "explorationRate", "budgetUsd", "budgetPolicy")
POLICIES: Final = ("cheapest", "strict")
MOST_PROVIDERS: Final = 200
MOST_USD: Final = 1e12
"""More than any request costs."""


class BadAuto(Exception):
    """A ``config.auto`` that cannot be used. *problems*: (path below ``config.auto``, what is wrong there)."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {message}" for path, message in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class AutoConfig:
    """How a stored combo chooses. None: as plain ``auto`` does."""

    pool: tuple[str, ...] = ()
    """Provider ids; empty = everything that is connected."""
    weights: Weights = field(default_factory=lambda: DEFAULT)
    exploration: float | None = None
    budget_usd: float | None = None
    strict: bool = False


PLAIN: Final = AutoConfig()


def read_auto(raw: object) -> AutoConfig:
    """Return the config in *raw*, the value of ``config.auto``. Raises BadAuto with every problem."""
    if raw is None:
        return PLAIN
    if not isinstance(raw, Mapping):
        raise BadAuto([("", "must be an object")])
    problems = [(str(name), f"is unknown; allowed: {', '.join(FIELDS)}") for name in raw if name not in FIELDS]
    config = AutoConfig(
        pool=_pool(raw.get("candidatePool"), problems),
        weights=_weights(raw, problems),
        exploration=_number(raw, "explorationRate", 1.0, problems),
        budget_usd=_number(raw, "budgetUsd", MOST_USD, problems),
        strict=_one_of(raw, "budgetPolicy", POLICIES, problems) == "strict",
    )
    if problems:
        raise BadAuto(problems)
    return config


def _pool(value: object, problems: list[tuple[str, str]]) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or len(value) > MOST_PROVIDERS:
        problems.append(("candidatePool", f"must be a list of at most {MOST_PROVIDERS} provider ids"))
        return ()
    for at, name in enumerate(value):
        if not isinstance(name, str) or not name:
            problems.append((f"candidatePool[{at}]", "must be a provider id"))
    return tuple(name for name in value if isinstance(name, str))


def _weights(raw: Mapping[str, object], problems: list[tuple[str, str]]) -> Weights:
    pack = _one_of(raw, "modePack", tuple(MODES), problems)
    base = MODES[pack] if pack is not None else DEFAULT
    given = raw.get("weights")
    if given is None:
        return base
    if not isinstance(given, Mapping):
        problems.append(("weights", "must be an object of factor and weight"))
        return base
    try:
        return effective(given, base=base)
    except BadWeights as error:
        problems.extend((f"weights.{name}" if name else "weights", text) for name, text in error.problems.items())
        return base


def _number(raw: Mapping[str, object], name: str, most: float, problems: list[tuple[str, str]]) -> float | None:
    value = raw.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        problems.append((name, f"must be a number from 0 to {most:,.0f}"))
        return None
    return float(value)


def _one_of(
    raw: Mapping[str, object], name: str, allowed: tuple[str, ...], problems: list[tuple[str, str]]
) -> str | None:
    value = raw.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or value not in allowed:
        known = PACKS if name == "modePack" else allowed
        problems.append((name, f"is unknown; allowed: {', '.join(known)}"))
        return None
    return value
