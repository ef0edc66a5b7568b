"""One plan: filters first, then every group's strategy from the inside out. The code that serves, explains and
simulates. Applies no effect and opens nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeVar

from troyproxy.catalog.combos import Combo
from troyproxy.routing.eligibility import Skip, SkipReason
from troyproxy.routing.members import Candidate, Group, Unit
from troyproxy.routing.strategies import Cursor, Effect, RouteContext, strategy_named

_U = TypeVar("_U", Candidate, Unit)

Eligible = Callable[[Candidate], SkipReason | None]
"""Says why a candidate is left out; None lets it in. Asked once per distinct candidate and plan."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Whom to try, in order; who was left out and why, in saved order; and what to remember at once."""

    candidates: tuple[Candidate, ...]
    skipped: tuple[Skip, ...] = ()
    effects: tuple[Effect, ...] = ()


def order(root: Group, eligible: Eligible, cursors: Mapping[str, Cursor], rng: Random, now: float) -> Plan:
    """Return the plan for the tree *root*.

    *cursors* are the circles by `circle_of`. A nested combo is one unit of the combo around it; one without an eligible
    member is none. The same spec with the same account is kept once, at its first place.
    """
    run = _Run(eligible, cursors, rng, now)
    kept = run.filtered(root)
    candidates = run.ordered(kept) if kept is not None else []
    return Plan(tuple(_once(candidates)), tuple(run.skipped), tuple(run.effects))


def circle_of(combo: Combo) -> str:
    """Return the name of a combo's circle: one that was deleted and made again under its old id begins anew."""
    return f"{combo.id}@{combo.created_at}" if combo.created_at else combo.id


def sticky_of(combo: Combo) -> int:
    """Return ``config.sticky``: plans per stop of a round-robin, 1 unless a greater whole number is configured."""
    value = combo.config.get("sticky")
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 1 else 1


@dataclass(slots=True)
class _Run:
    """The working state of one call of `order`."""

    eligible: Eligible
    cursors: Mapping[str, Cursor]
    rng: Random
    now: float
    verdicts: dict[str, bool] = field(default_factory=dict)
    skipped: list[Skip] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    circles: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def filtered(self, group: Group) -> Group | None:
        """Return *group* without what is not eligible and without repetitions, or None when nothing is left."""
        units = tuple(_once(group.units))
        self.circles[group.combo.id] = tuple(unit.identity for unit in units)
        kept = tuple(unit for unit in map(self._kept, units) if unit is not None)
        return replace(group, units=kept) if kept else None

    def ordered(self, group: Group) -> list[Candidate]:
        """Return the candidates of a filtered *group*, each group by its own strategy."""
        combo = group.combo
        ctx = RouteContext(
            now=self.now,
            rng=self.rng,
            combo_id=circle_of(combo),
            cursor=self.cursors.get(circle_of(combo)),
            sticky=sticky_of(combo),
            circle=self.circles[combo.id],
        )
        result = strategy_named(combo.strategy)(group.units, ctx)
        self.effects += (effect for effect in result.effects if effect not in self.effects)
        inner = ([unit] if isinstance(unit, Candidate) else self.ordered(unit) for unit in result.members)
        return [candidate for part in inner for candidate in part]

    def _kept(self, unit: Unit) -> Unit | None:
        if isinstance(unit, Group):
            return self.filtered(unit)
        if unit.identity not in self.verdicts:
            self.verdicts[unit.identity] = self._judge(unit)
        return unit if self.verdicts[unit.identity] else None

    def _judge(self, candidate: Candidate) -> bool:
        reason = self.eligible(candidate)
        if reason is not None:
            self.skipped.append(Skip(candidate.spec, reason, candidate.provider.id if candidate.provider else ""))
        return reason is None


def _once(units: Iterable[_U]) -> list[_U]:
    """Return *units* without repetitions, each at its first place."""
    first: dict[str, _U] = {}
    for unit in units:
        first.setdefault(unit.identity, unit)
    return list(first.values())
