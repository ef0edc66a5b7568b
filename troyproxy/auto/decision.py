"""The one path of every ``auto`` plan: budget, exclusion, score, last known good, exploration, order.

The pool comes with its hard filters done (what the request needs, keys, circuits, cooldowns). Decides and explains;
remembers nothing: what must be kept comes back in the `Decision`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from troyproxy.auto.board import Board, Entry, Judge, Scored, board_of
from troyproxy.auto.exclusion import Place
from troyproxy.auto.factors import Demand
from troyproxy.auto.incident import in_incident
from troyproxy.auto.variants import Known
from troyproxy.auto.weights import DEFAULT, Weights

__all__ = ["MARGIN", "Decision", "Entry", "Rules", "Scored", "decide"]

MARGIN: Final = 0.05
"""How far behind the best the last known good target may score and still come first."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How to choose. *known* is what `last` (an identity) means; *pinned*: a session holds its target."""

    weights: Weights = field(default_factory=lambda: DEFAULT)
    exploration: float = 0.0
    known: Known = Known.MARGIN
    last: str | None = None
    pinned: bool = False
    incident: bool = False
    budget_usd: float | None = None
    strict: bool = False
    """Nothing within the budget: refuse, rather than take the cheapest."""
    drifting: frozenset[str] = frozenset()
    """Identities that go last, whatever they score: their tool calls came as text lately."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, and why."""

    order: tuple[str, ...] = ()
    """Identities, the first to be tried first."""
    scored: tuple[Scored, ...] = ()
    """Everything that was scored, in pool order."""
    weights: Weights = field(default_factory=lambda: DEFAULT)
    incident: bool = False
    known: bool = False
    """The last known good target leads for that reason."""
    explored: bool = False
    probe: str | None = None
    """The first candidate of the order is in only as a probe of its exclusion."""
    over_budget: tuple[str, ...] = ()
    out: tuple[str, ...] = ()
    """Left out by exclusion, those that this plan excludes included."""
    to_exclude: tuple[str, ...] = ()
    """Candidates whose score is too low: their exclusion begins now."""
    readmitted: bool = False
    """Everything was excluded, so those whose term ends first came back."""
    cheapest_usd: float | None = None
    """The lowest estimate, when a strict budget fits nobody."""

    @property
    def experiment(self) -> bool:
        """Whether who leads is being tried out, rather than chosen."""
        return self.explored or self.probe is not None


def decide(pool: Sequence[Entry], demand: Demand, rules: Rules, rng: Random, judge: Judge = board_of) -> Decision:
    """Return the order for *pool*; an empty one: nobody fits a strict budget. *judge* may keep what it scored."""
    weights = in_incident(rules.weights) if rules.incident else rules.weights
    affordable, over = _within_budget(pool, rules)
    if pool and not affordable:
        return Decision(weights=weights, incident=rules.incident, over_budget=over, cheapest_usd=_cheapest(pool))
    board = judge(affordable, demand, weights)
    low = [at for at in board.low if affordable[at].place is Place.IN]
    order, readmitted = _admitted(affordable, board, frozenset(low), _held_by(affordable, rules))
    order, steady = _steady_first(order, rules.drifting)
    probe = order[0].identity if order and order[0].place is Place.PROBE else None
    free = probe is None and not readmitted
    known = free and _recall(order, rules, board, steady)
    explored = free and _explore(order, rules, rng, steady)
    inside = {entry.identity for entry in order} if len(order) < len(affordable) else None
    return Decision(
        order=tuple([entry.identity for entry in order]),
        scored=board.scored,
        weights=weights,
        incident=rules.incident,
        known=known and not explored,
        explored=explored,
        probe=probe,
        over_budget=over,
        out=() if inside is None else tuple(e.identity for e in affordable if e.identity not in inside),
        to_exclude=tuple(affordable[at].identity for at in sorted(low)),
        readmitted=readmitted,
    )


def _within_budget(pool: Sequence[Entry], rules: Rules) -> tuple[Sequence[Entry], tuple[str, ...]]:
    """Return who fits, and who does not. Where nobody fits and that is no refusal, the cheapest are who fits."""
    if rules.budget_usd is None:
        return pool, ()
    limit = rules.budget_usd
    fits = [entry for entry in pool if entry.estimate_usd is not None and entry.estimate_usd <= limit]
    if not fits and not rules.strict:
        cheapest = _cheapest(pool)
        fits = [entry for entry in pool if entry.estimate_usd == cheapest]
    inside = {entry.identity for entry in fits}
    return fits, tuple(entry.identity for entry in pool if entry.identity not in inside)


def _cheapest(pool: Sequence[Entry]) -> float | None:
    return min((entry.estimate_usd for entry in pool if entry.estimate_usd is not None), default=None)


def _held_by(pool: Sequence[Entry], rules: Rules) -> str | None:
    """Return the target that holds a session: nothing is tried out on that."""
    held = rules.pinned and any(entry.identity == rules.last and entry.place is Place.IN for entry in pool)
    return rules.last if held else None


def _admitted(
    pool: Sequence[Entry], board: Board, low: frozenset[int], held_by: str | None
) -> tuple[list[Entry], bool]:
    """Return who may serve, the best first. When all are excluded all are back, and the order is by their return."""
    ranked = [pool[at] for at in board.ranking if at not in low]
    if ranked and _all_in(ranked):
        return ranked, False
    kept = [entry for entry in ranked if entry.place is not Place.OUT]
    if kept or not pool:
        held = any(entry.identity == held_by for entry in kept)
        return _with_probes(kept, leading=0 if held else 1), False
    # The terms of those that score too low begin now, so they end last.
    back = sorted(range(len(pool)), key=lambda at: (at in low, pool[at].back_at, at))
    return [pool[at] for at in back], True


def _all_in(entries: Sequence[Entry]) -> bool:
    for entry in entries:  # noqa: SIM110 -- asked of every plan: a generator costs three times as much
        if entry.place is not Place.IN:
            return False
    return True


def _with_probes(order: list[Entry], *, leading: int) -> list[Entry]:
    """The first request through after a term is the probe: so many on probation lead, others such go last."""
    waiting = [entry for entry in order if entry.place is Place.PROBE]
    settled = [entry for entry in order if entry.place is not Place.PROBE]
    return [*waiting[:leading], *settled, *waiting[leading:]]


def _steady_first(order: list[Entry], drifting: frozenset[str]) -> tuple[list[Entry], int]:
    """Return *order* with those that drift behind the others, and how many may lead: all, when all of them drift."""
    steady = [entry for entry in order if entry.identity not in drifting] if drifting else order
    if not steady or len(steady) == len(order):
        return order, len(order)
    return [*steady, *(entry for entry in order if entry.identity in drifting)], len(steady)


def _recall(order: list[Entry], rules: Rules, board: Board, leaders: int) -> bool:
    """Put the last known good target first, where it is among the *leaders* of the order and good enough."""
    if rules.last is None:
        return False
    at = next((at for at, entry in enumerate(order[:leaders]) if entry.identity == rules.last), None)
    if at is None:
        return False
    scores = {one.identity: one.score for one in board.scored}
    mine, limit = scores[rules.last], scores[order[0].identity] - MARGIN
    if rules.known is Known.MARGIN and mine < limit and not math.isclose(mine, limit):
        return False
    order.insert(0, order.pop(at))
    return True


def _explore(order: list[Entry], rules: Rules, rng: Random, leaders: int) -> bool:
    """Now and then put another of the *leaders* first: any but the one that leads, with equal chance."""
    if leaders < 2 or rules.incident or rules.pinned or rng.random() >= rules.exploration:
        return False
    order.insert(0, order.pop(rng.randrange(1, leaders)))
    return True
