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

from troyproxy.auto.exclusion import LEAST_SCORE, Place
from troyproxy.auto.factors import Demand, Factors, Standing, cost_usd, factors_of, p95_ms, score
from troyproxy.auto.incident import in_incident
from troyproxy.auto.variants import Known
from troyproxy.auto.weights import DEFAULT, Weights

MARGIN: Final = 0.05
"""How far behind the best the last known good target may score and still come first."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One candidate of the pool. *identity* is unique in it; *estimate_usd* is the cost of this very request."""

    identity: str
    standing: Standing
    estimate_usd: float | None = None
    place: Place = Place.IN
    back_at: float = 0.0
    """When its exclusion ends; unix seconds, for ordering only."""


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


@dataclass(frozen=True, slots=True)
class Scored:
    """One candidate as it was judged."""

    identity: str
    factors: Factors
    score: float


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


def decide(pool: Sequence[Entry], demand: Demand, rules: Rules, rng: Random) -> Decision:
    """Return the order for *pool*. An empty order: nobody is left, and `cheapest_usd` says whether for the budget."""
    weights = in_incident(rules.weights) if rules.incident else rules.weights
    affordable, over = _within_budget(pool, rules)
    if pool and not affordable:
        return Decision(weights=weights, incident=rules.incident, over_budget=over, cheapest_usd=_cheapest(pool))
    scored = _scored(affordable, demand, weights)
    low = _too_low(affordable, scored)
    kept, readmitted = _healthy(affordable, low)
    ranked = sorted(kept, key=lambda at: _rank(affordable[at], scored[at], at))
    order = _probe_first([affordable[at] for at in ranked]) if not readmitted else [affordable[at] for at in kept]
    probe = _probing(order)
    score_of = {one.identity: one.score for one in scored}
    known = probe is None and _recall(order, rules, score_of)
    explored = probe is None and _explore(order, rules, rng)
    inside = {entry.identity for entry in order}
    return Decision(
        order=tuple(entry.identity for entry in order),
        scored=tuple(scored),
        weights=weights,
        incident=rules.incident,
        known=known and not explored,
        explored=explored,
        probe=probe,
        over_budget=over,
        out=tuple(entry.identity for entry in affordable if entry.identity not in inside),
        to_exclude=tuple(affordable[at].identity for at in sorted(low)),
        readmitted=readmitted,
    )


def _within_budget(pool: Sequence[Entry], rules: Rules) -> tuple[list[Entry], tuple[str, ...]]:
    """Return who fits, and who does not. Where nobody fits and that is no refusal, the cheapest are who fits."""
    if rules.budget_usd is None:
        return list(pool), ()
    limit = rules.budget_usd
    fits = [entry for entry in pool if entry.estimate_usd is not None and entry.estimate_usd <= limit]
    if not fits and not rules.strict:
        cheapest = _cheapest(pool)
        fits = [entry for entry in pool if entry.estimate_usd == cheapest]
    inside = {entry.identity for entry in fits}
    return fits, tuple(entry.identity for entry in pool if entry.identity not in inside)


def _cheapest(pool: Sequence[Entry]) -> float | None:
    return min((entry.estimate_usd for entry in pool if entry.estimate_usd is not None), default=None)


def _scored(pool: Sequence[Entry], demand: Demand, weights: Weights) -> list[Scored]:
    factors = factors_of([entry.standing for entry in pool], demand)
    return [Scored(e.identity, f, score(weights, f)) for e, f in zip(pool, factors, strict=True)]


def _too_low(pool: Sequence[Entry], scored: Sequence[Scored]) -> set[int]:
    """Return who is out for its score from now on. A sole candidate never is, nor one that is out or on probation."""
    if len(pool) < 2:
        return set()
    return {
        at
        for at, (entry, one) in enumerate(zip(pool, scored, strict=True))
        if one.score < LEAST_SCORE and entry.place is Place.IN
    }


def _healthy(pool: Sequence[Entry], low: set[int]) -> tuple[list[int], bool]:
    """Return the places in *pool* of those that may serve; when all are excluded, all are back, earliest end first."""
    kept = [at for at, entry in enumerate(pool) if entry.place is not Place.OUT and at not in low]
    if kept or not pool:
        return kept, False
    return sorted(range(len(pool)), key=lambda at: (pool[at].back_at, at)), True


def _rank(entry: Entry, one: Scored, at: int) -> tuple[float, float, float, int]:
    return (-one.score, cost_usd(entry.standing), p95_ms(entry.standing), at)


def _probe_first(order: list[Entry]) -> list[Entry]:
    """The first request through after a term is the probe: one candidate on probation leads, others such go last."""
    waiting = [entry for entry in order if entry.place is Place.PROBE]
    settled = [entry for entry in order if entry.place is not Place.PROBE]
    return [*waiting[:1], *settled, *waiting[1:]]


def _probing(order: Sequence[Entry]) -> str | None:
    return order[0].identity if order and order[0].place is Place.PROBE else None


def _recall(order: list[Entry], rules: Rules, score_of: dict[str, float]) -> bool:
    """Put the last known good target first, where it is in the order and good enough."""
    at = next((at for at, entry in enumerate(order) if entry.identity == rules.last), None)
    if at is None:
        return False
    best = max(score_of[entry.identity] for entry in order)
    near = score_of[order[at].identity] >= best - MARGIN
    if rules.known is Known.MARGIN and not near and not math.isclose(score_of[order[at].identity], best - MARGIN):
        return False
    order.insert(0, order.pop(at))
    return True


def _explore(order: list[Entry], rules: Rules, rng: Random) -> bool:
    """Now and then put another candidate first: any but the one that leads, with equal chance."""
    if len(order) < 2 or rules.incident or rules.pinned or rng.random() >= rules.exploration:
        return False
    order.insert(0, order.pop(rng.randrange(1, len(order))))
    return True
