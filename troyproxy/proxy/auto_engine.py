"""The auto engine of this process: what it remembers of candidates, and what follows from a decision.

The decision itself is pure (`auto.decision`) and its measured inputs are in `boards`. What follows from one
(exclusions, probes, metrics) is applied when a plan is made, and not when it is only explained.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from troyproxy.accounting.finished import Finished
from troyproxy.auto.board import Entry
from troyproxy.auto.decision import Decision
from troyproxy.auto.exclusion import PROBE_LEAST_S, Record
from troyproxy.auto.fitness import Task
from troyproxy.auto.weights import Weights
from troyproxy.catalog.combos import Combo
from troyproxy.catalog.providers import Account
from troyproxy.ports import AutoPlan, Clock, Observer
from troyproxy.proxy.boards import Boards, Field, Key, key_of
from troyproxy.proxy.call import Call, MemoryKey
from troyproxy.proxy.exclusions import Exclusions
from troyproxy.proxy.memory import TargetMemory
from troyproxy.proxy.outcome import Target
from troyproxy.routing.candidates import Candidate

WEIGHTS: Final = 3
"""Where the weights stand in a `MemoryKey`."""
MARKS: Final = ("explored", "known", "probe", "incident", "readmitted")
"""What a decision says of itself in ``x-troy-strategy``."""
MOST_WEIGHTS: Final = 1_000
"""Sets of weights whose names are kept."""
SHOWN: Final = 10
"""Candidates whose scores are traced."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided for one combo of the tree."""

    combo: Combo
    decision: Decision
    candidates: Mapping[str, Candidate]
    task: Task
    specificity: float
    memory_key: MemoryKey


class AutoEngine:
    """Shared by all plans. *exploration* is a rate."""

    def __init__(
        self, *, clock: Clock, memory: TargetMemory, boards: Boards, exploration: float, observer: Observer
    ) -> None:
        self.clock, self.memory, self.boards, self.exploration = clock, memory, boards, exploration
        self._observer = observer
        self.exclusions = Exclusions(clock, observer)
        self._names: dict[tuple[float, ...], str] = {}

    def placed(self, field: Field, key: MemoryKey) -> Sequence[Entry]:
        """Return the pool of *field* with everybody at the place where exclusion has them, by the weights of *key*."""
        return self.exclusions.placed(field, key[WEIGHTS])

    def name_of(self, weights: Weights) -> str:
        """Return what *weights* are called in memory and exclusions: the numbers, written once."""
        values = tuple(weights.values())
        name = self._names.get(values)
        if name is None:
            if len(self._names) >= MOST_WEIGHTS:
                self._names.clear()
            name = self._names[values] = repr(values)
        return name

    def apply(self, call: Call, decided: Iterable[Decided]) -> None:
        """Put what was decided for *call* into force: exclusions begin, a probe is leased, the ledger is told."""
        for made in decided:
            decision = made.decision
            for identity in decision.to_exclude:
                self.exclusions.exclude(key_of(made.candidates[identity]), made.memory_key[WEIGHTS])
            if decision.probe is not None:
                # Until the attempt begins, which knows how long it may take (`probing`).
                probed = key_of(made.candidates[decision.probe])
                self.exclusions.lease(probed, PROBE_LEAST_S, made.memory_key[WEIGHTS])
                call.probe = decision.probe
            if decision.order:
                self._tell(call, made, made.candidates[decision.order[0]])

    def _tell(self, call: Call, made: Decided, first: Candidate) -> None:
        """Tell the ledger and the observer who leads, and why."""
        decision = made.decision
        marks = [name for name in MARKS if getattr(decision, name)]
        call.ledger.marks.extend([mark for mark in marks if mark not in call.ledger.marks])
        scores = {one.identity: one.score for one in decision.scored}
        if call.ledger.told:
            call.ledger.say(
                f"auto {made.combo.name}: task {made.task}, specificity {made.specificity:.0f}, {' '.join(marks)}"
            )
            call.ledger.say("  " + ", ".join([f"{name} {scores[name]:.4f}" for name in decision.order[:SHOWN]]))
        self._observer.auto_planned(
            AutoPlan(
                name=made.combo.name,
                provider=first.provider.id if first.provider is not None else "",
                model=first.model,
                score=scores[first.identity],
                explored=decision.explored,
                known=decision.known,
                incident=decision.incident,
            )
        )

    def is_probe(self, call: Call, candidate: Candidate, account: Account) -> bool:
        """Whether an attempt there is a probe: the plan has made it one, or its term is over and nobody probes it."""
        if candidate.identity == call.probe:
            return True
        if call.gist is None or candidate.provider is None:  # no plan of ours
            return False
        return self.exclusions.on_probation((candidate.provider.id, candidate.model, account.name))

    def probing(self, target: Target) -> None:
        """The probe of an exclusion begins: nobody else probes while it may take."""
        self.exclusions.probing(_key(target), target.started_at, target.limit_s)

    def served(self, keys: Collection[MemoryKey], target: Target) -> None:
        """*target* has begun to answer: that is remembered under *keys*, and a good probe whatever follows."""
        key = (target.provider.id, target.candidate.model, target.account.name)
        if keys:
            self.memory.served(keys, *key)
        self.exclusions.served(key, target.started_at)

    def attempted(self, attempt: Finished) -> None:
        """Learn from a finished attempt of this process, whatever asked for it."""
        self.exclusions.attempted(attempt)
        if attempt.ok is False:
            self.memory.failed(attempt.provider, attempt.model, attempt.account)

    def heard(self, attempt: Finished) -> None:
        """Learn what another instance tells of its attempt: what it remembers of it, and what it forgot."""
        key = (attempt.provider, attempt.model, attempt.account)
        if attempt.ok:
            self.memory.served(attempt.remember, *key)
        elif attempt.ok is False:
            self.memory.failed(*key)

    def record(self, candidate: Candidate, key: MemoryKey) -> Record:
        """Return what is remembered of *candidate* for the weights of *key*, for explanations."""
        return self.exclusions.record(key_of(candidate), key[WEIGHTS])


def _key(target: Target) -> Key:
    return target.provider.id, target.candidate.model, target.account.name
