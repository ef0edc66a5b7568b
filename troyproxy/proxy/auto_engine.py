"""The auto engine of this process: what it knows of candidates, and the one path that it orders them by.

The decision itself is pure (`auto.decision`). Here are its inputs (measurements, prices, fitness, memory) and what
follows from it (exclusions, probes, metrics), which is applied when a plan is made, and not when it is only explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cachetools import LRUCache

from troyproxy.accounting.finished import Finished
from troyproxy.auto import exclusion
from troyproxy.auto.decision import Decision, Entry
from troyproxy.auto.exclusion import FRESH, Record
from troyproxy.auto.factors import Standing
from troyproxy.auto.fitness import FitnessTable, Task
from troyproxy.auto.tiers import account_tier, economic_tier
from troyproxy.catalog.combos import Combo
from troyproxy.ports import AutoPlan, Clock, Observer
from troyproxy.proxy.accounts import synthetic
from troyproxy.proxy.call import Call, MemoryKey
from troyproxy.proxy.memory import TargetMemory
from troyproxy.routing.candidates import Candidate

BOUND: Final = 10_000

MARKS: Final = ("explored", "known", "probe", "incident", "readmitted")
"""What a decision says of itself in ``x-troy-strategy``."""
SHOWN: Final = 10
"""Candidates whose scores are traced."""

Key = tuple[str, str, str]
"""Provider, model and account, as attempts are recorded."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided for one combo of the tree."""

    combo: Combo
    decision: Decision
    candidates: tuple[Candidate, ...]
    task: Task
    specificity: float
    memory_key: MemoryKey


class AutoEngine:
    """Shared by all plans. *standing* takes the measured part of a candidate at a moment; *exploration* is a rate."""

    def __init__(
        self,
        *,
        clock: Clock,
        memory: TargetMemory,
        standing: Callable[[Candidate, float], Standing],
        fitness: FitnessTable,
        exploration: float,
        observer: Observer,
    ) -> None:
        self.clock, self.memory, self.exploration = clock, memory, exploration
        self._standing, self._fitness, self._observer = standing, fitness, observer
        self._records: LRUCache[Key, Record] = LRUCache(BOUND)
        self._cells: LRUCache[str, dict[Task, float]] = LRUCache(BOUND)

    def entry(self, candidate: Candidate, task: Task, estimate_usd: float | None) -> Entry:
        """Return *candidate* as the decision sees it."""
        now = self.clock.now()
        record = self._records.get(key_of(candidate), FRESH)
        return Entry(
            identity=candidate.identity,
            standing=self._full(candidate, task),
            estimate_usd=estimate_usd,
            place=exclusion.place(record, now),
            back_at=record.until or 0.0,
        )

    def _full(self, candidate: Candidate, task: Task) -> Standing:
        provider, price = candidate.provider, candidate.facts.price
        accounts = provider.accounts if provider is not None else ()
        account = next((a for a in accounts if a.name == candidate.account), accounts[0] if accounts else None)
        keyless = provider is not None and provider.keyless
        return replace(
            self._standing(candidate, self.clock.now()),
            input_usd=price.input,
            output_usd=price.output,
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

    def apply(self, call: Call, decided: Iterable[Decided], *, normal_s: float) -> None:
        """Put what was decided for *call* into force: exclusions begin, a probe is leased, the ledger is told."""
        for made in decided:
            by_identity = {candidate.identity: candidate for candidate in made.candidates}
            for identity in made.decision.to_exclude:
                self._exclude(key_of(by_identity[identity]), "score")
            if made.decision.probe is not None:
                self._lease(key_of(by_identity[made.decision.probe]), normal_s)
                call.probe = made.decision.probe
            if made.decision.order:
                self._tell(call, made, by_identity[made.decision.order[0]])

    def _lease(self, key: Key, normal_s: float) -> None:
        before = self._records.get(key, FRESH)
        self._records[key] = exclusion.leased(before, self.clock.now(), normal_s=normal_s)

    def _tell(self, call: Call, made: Decided, first: Candidate) -> None:
        """Tell the ledger and the observer who leads, and why."""
        decision = made.decision
        score = next(one.score for one in decision.scored if one.identity == first.identity)
        provider = first.provider.id if first.provider is not None else ""
        marks = [name for name in MARKS if getattr(decision, name)]
        call.ledger.marks.extend(mark for mark in marks if mark not in call.ledger.marks)
        call.ledger.say(
            f"auto {made.combo.name}: task {made.task}, specificity {made.specificity:.0f}, {' '.join(marks)}"
        )
        ranked = sorted(decision.scored, key=lambda one: -one.score)[:SHOWN]
        call.ledger.say("  " + ", ".join(f"{one.identity} {one.score:.4f}" for one in ranked))
        self._observer.auto_planned(
            AutoPlan(
                name=made.combo.name,
                provider=provider,
                model=first.model,
                score=score,
                explored=decision.explored,
                known=decision.known,
                incident=decision.incident,
            )
        )

    def attempted(self, attempt: Finished) -> None:
        """Learn from a finished attempt, whoever made it."""
        key = (attempt.provider, attempt.model, attempt.account)
        before = self._records.get(key, FRESH)
        if attempt.ok is None:
            if before.probe_until is not None:
                self._records[key] = exclusion.returned(before)
            return
        after = exclusion.attempted(before, self.clock.now(), ok=attempt.ok)
        self._records[key] = after
        if not attempt.ok:
            self.memory.failed(*key)
        if after.row > before.row:
            self._observer.auto_excluded(attempt.provider, attempt.model, "probe" if before.until else "failures")

    def _exclude(self, key: Key, reason: str) -> None:
        self._records[key] = exclusion.excluded(self._records.get(key, FRESH), self.clock.now())
        self._observer.auto_excluded(key[0], key[1], reason)

    def record(self, candidate: Candidate) -> Record:
        """Return what is remembered of *candidate*, for explanations."""
        return self._records.get(key_of(candidate), FRESH)


def key_of(candidate: Candidate) -> Key:
    """Return the key under which attempts at *candidate* are recorded."""
    provider = candidate.provider
    if provider is None:
        return "", candidate.model, ""
    names: Sequence[str] = [account.name for account in provider.accounts] or [synthetic(provider).name]
    return provider.id, candidate.model, candidate.account or names[0]
