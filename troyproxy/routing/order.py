"""One plan: filters first, then every group's strategy from the inside out. The code that serves, explains and
simulates. Applies no effect and opens nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from types import MappingProxyType
from typing import TypeVar, cast

from troyproxy.catalog.combos import STRATEGY_NAMES, Combo
from troyproxy.routing.context import Effect, RouteContext, State, Strategy
from troyproxy.routing.eligibility import Skip, SkipReason
from troyproxy.routing.members import Candidate, Group, Unit
from troyproxy.routing.readings import Read, nothing_read
from troyproxy.routing.strategies import FIXED, STRATEGIES, fallback

_U = TypeVar("_U", Candidate, Unit)

Eligible = Callable[[Candidate], SkipReason | None]
"""Says why a candidate is left out; None lets it in. Asked once per distinct candidate and plan."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Whom to try, in order; who was left out and why, in saved order; and what to remember at once."""

    candidates: tuple[Candidate, ...]
    skipped: tuple[Skip, ...] = ()
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class Sight:
    """What the strategies of one plan see beside the members. *now* is unix seconds; *rng* is seeded per request."""

    rng: Random
    now: float
    states: Mapping[str, State] = field(default_factory=lambda: MappingProxyType({}))
    """What the plans before left, by `circle_of`."""
    read: Read = nothing_read
    last: Callable[[Combo], str | None] = lambda combo: None  # noqa: ARG005 -- by default nothing is remembered
    """Returns the identity of a combo's remembered target."""
    tokens: int = 0
    """Context that the request needs."""
    strategies: Mapping[str, Strategy] = field(default_factory=lambda: STRATEGIES)


@dataclass(frozen=True, slots=True)
class Sifted:
    """A tree without those that may not be tried now: the same for every request to which the same filters apply."""

    kept: Group | None
    """None: nobody is left."""
    skipped: tuple[Skip, ...]
    circles: Mapping[str, tuple[str, ...]]
    """By combo id, the identities of all its units."""
    nested: bool = False
    """Among those that are left are combos, so that a member may come up twice."""


def order(root: Group, eligible: Eligible, sight: Sight) -> Plan:
    """Return the plan for the tree *root*.

    A nested combo is one unit of the combo around it; one without an eligible
    member is none. The same spec with the same account is kept once, at its first place.
    """
    return arrange(sift(root, eligible), sight)


def sift(root: Group, eligible: Eligible) -> Sifted:
    """Return the first half of a plan: the tree *root* without whoever is not *eligible* and without repetitions."""
    sieve = _Sieve(eligible)
    kept = sieve.filtered(root)
    nested = kept is not None and any(isinstance(unit, Group) for unit in kept.units)
    return Sifted(kept, tuple(sieve.skipped), sieve.circles, nested)


def arrange(sifted: Sifted, sight: Sight) -> Plan:
    """Return the other half: those that are left, in the order of their strategies."""
    if sifted.kept is None:
        return Plan((), sifted.skipped)
    run = _Arranger(sifted, sight)
    members = run.ordered(sifted.kept)
    return Plan(tuple(_once(members)) if sifted.nested else members, sifted.skipped, tuple(run.effects))


def is_fixed(strategy: str) -> bool:
    """Whether groups with this *strategy* keep their saved order whatever the request; an unknown one does."""
    return strategy in FIXED or strategy not in STRATEGY_NAMES


def circle_of(combo: Combo) -> str:
    """Return the name of a combo's circle: one that was deleted and made again under its old id begins anew."""
    return f"{combo.id}@{combo.created_at}" if combo.created_at else combo.id


def sticky_of(combo: Combo) -> int:
    """Return ``config.sticky``: plans per stop of a round-robin, 1 unless a greater whole number is configured."""
    value = combo.config.get("sticky")
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 1 else 1


@dataclass(slots=True)
class _Sieve:
    """The working state of one call of `sift`."""

    eligible: Eligible
    verdicts: dict[str, bool] = field(default_factory=dict)
    skipped: list[Skip] = field(default_factory=list)
    circles: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def filtered(self, group: Group) -> Group | None:
        """Return *group* without what is not eligible and without repetitions, or None when nothing is left."""
        units = _once(group.units)
        self.circles[group.combo.id] = tuple([unit.identity for unit in units])
        kept = tuple([unit for unit in map(self._kept, units) if unit is not None])
        return replace(group, units=kept) if kept else None

    def _kept(self, unit: Unit) -> Unit | None:
        if isinstance(unit, Group):
            return self.filtered(unit)
        passes = self.verdicts.get(unit.identity)
        if passes is None:
            passes = self.verdicts[unit.identity] = self._judge(unit)
        return unit if passes else None

    def _judge(self, candidate: Candidate) -> bool:
        reason = self.eligible(candidate)
        if reason is not None:
            self.skipped.append(Skip.of(candidate, reason))
        return reason is None


@dataclass(slots=True)
class _Arranger:
    """The working state of one call of `arrange`."""

    sifted: Sifted
    sight: Sight
    effects: list[Effect] = field(default_factory=list)

    def ordered(self, group: Group) -> tuple[Candidate, ...]:
        """Return the candidates of a filtered *group*, each group by its own strategy."""
        strategy = self.sight.strategies.get(group.combo.strategy, fallback)
        result = strategy(group.units, self._context(group.combo))
        self.effects += [effect for effect in result.effects if effect not in self.effects]
        if not self.sifted.nested:
            return cast("tuple[Candidate, ...]", result.members)
        inner = [(unit,) if isinstance(unit, Candidate) else self.ordered(unit) for unit in result.members]
        return tuple([candidate for part in inner for candidate in part])

    def _context(self, combo: Combo) -> RouteContext:
        sight, circle = self.sight, circle_of(combo)
        return RouteContext(
            now=sight.now,
            rng=sight.rng,
            combo_id=circle,
            state=sight.states.get(circle),
            sticky=sticky_of(combo),
            circle=self.sifted.circles[combo.id],
            last=sight.last(combo),
            read=sight.read,
            tokens=sight.tokens,
        )


def _once(units: Iterable[_U]) -> list[_U]:
    """Return *units* without repetitions, each at its first place."""
    first: dict[str, _U] = {}
    for unit in units:
        first.setdefault(unit.identity, unit)
    return list(first.values())
