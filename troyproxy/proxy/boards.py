"""Measures and scores pools for the auto engine, each at most once a second for what is asked of it.

What was measured may be a second old in a score. Circuits and the configuration never are: when one of them changes, a
pool is measured anew. Who is excluded, and what a request costs, is no part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from cachetools import LRUCache

from troyproxy.auto.board import Board, Entry, board_of, kind_of
from troyproxy.auto.factors import Demand, Standing
from troyproxy.auto.fitness import FitnessTable, Task
from troyproxy.auto.tiers import account_tier, economic_tier
from troyproxy.auto.weights import Weights
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.proxy.accounts import synthetic
from troyproxy.resilience.breaker import CircuitState
from troyproxy.resilience.health import CircuitKey
from troyproxy.routing.candidates import Candidate

FRESH_S: Final = 1.0
"""How long what was measured is good for."""
KEPT: Final = 5_000
"""Candidates in all pools that are kept."""
BOARDS: Final = 8
"""Boards of one pool that are kept."""
MODELS: Final = 10_000
"""Models whose fitness is kept."""

Key = tuple[str, str, str]
"""Provider, model and account, as attempts are recorded."""
Circuits = Mapping[CircuitKey, CircuitState]
"""Those that are not closed."""
Measure = Callable[[Candidate, float], Standing]
"""Takes the measured part of a candidate's standing at a moment."""


@dataclass(frozen=True, slots=True)
class Field:
    """A pool as it was measured at one moment, and the boards made of it since."""

    snapshot: Snapshot
    circuits: Circuits
    at: float
    candidates: Mapping[str, Candidate]
    keys: tuple[Key, ...]
    entries: tuple[Entry, ...]
    """In pool order, as if nobody were excluded."""
    _boards: dict[tuple[object, ...], Board] = field(default_factory=dict)

    def holds(self, snapshot: Snapshot, circuits: Circuits, now: float) -> bool:
        """Whether the pool need not be measured anew."""
        return self.snapshot is snapshot and 0 <= now - self.at < FRESH_S and self.circuits == circuits

    def judge(self, pool: Sequence[Entry], demand: Demand, weights: Weights) -> Board:
        """Return the board of *pool*, which is this one or a part of it."""
        if len(pool) != len(self.entries):
            return board_of(pool, demand, weights)
        key = (*weights.values(), *kind_of(demand))
        board = self._boards.get(key)
        if board is None:
            if len(self._boards) >= BOARDS:
                self._boards.clear()
            board = self._boards[key] = board_of(pool, demand, weights)
        return board


class Boards:
    """Owns the pools that were measured lately."""

    def __init__(self, measure: Measure, fitness: FitnessTable) -> None:
        self._measure, self._fitness = measure, fitness
        self._fields: LRUCache[tuple[object, ...], Field] = LRUCache(KEPT, getsizeof=lambda kept: len(kept.entries) + 1)
        self._cells: LRUCache[str, dict[Task, float]] = LRUCache(MODELS)

    def field(self, pool: Sequence[Candidate], task: Task, snapshot: Snapshot, circuits: Circuits, now: float) -> Field:
        """Return *pool*, whose members are those of *snapshot*, as it is measured for a *task*."""
        name = (task, *[candidate.identity for candidate in pool])
        found = self._fields.get(name)
        if found is not None and found.holds(snapshot, circuits, now):
            return found
        made = Field(
            snapshot=snapshot,
            circuits=circuits,
            at=now,
            candidates={candidate.identity: candidate for candidate in pool},
            keys=tuple(map(key_of, pool)),
            entries=tuple(Entry(candidate.identity, self._standing(candidate, task, now)) for candidate in pool),
        )
        self._fields.pop(name, None)
        if len(pool) < KEPT:
            self._fields[name] = made
        return made

    def _standing(self, candidate: Candidate, task: Task, now: float) -> Standing:
        provider, price = candidate.provider, candidate.facts.price
        accounts = provider.accounts if provider is not None else ()
        account = next((a for a in accounts if a.name == candidate.account), accounts[0] if accounts else None)
        keyless = provider is not None and provider.keyless
        return replace(
            self._measure(candidate, now),
            fitness=self._fitness_of(candidate)[task],
            model_tier=economic_tier(price.input, override=candidate.facts.tier),
            account_tier=account_tier(account.tier if account is not None else None, keyless=keyless),
            reset_interval_s=account.quota_reset_interval_s if account is not None else None,
        )

    def _fitness_of(self, candidate: Candidate) -> dict[Task, float]:
        over = candidate.facts.fitness
        if over:
            known = {Task(name): value for name, value in over.items() if name in Task.__members__.values()}
            return self._fitness.cells_of(candidate.model, known)
        found = self._cells.get(candidate.model)
        if found is None:
            found = self._cells[candidate.model] = self._fitness.cells_of(candidate.model)
        return found


def key_of(candidate: Candidate) -> Key:
    """Return the key under which attempts at *candidate* are recorded."""
    provider = candidate.provider
    if provider is None:
        return "", candidate.model, ""
    names = (account.name for account in provider.accounts)
    return provider.id, candidate.model, candidate.account or next(names, "") or synthetic(provider).name
