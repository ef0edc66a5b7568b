"""The auto engine of this process: what it remembers of candidates, and what follows from a decision.

The decision itself is pure (`auto.decision`) and its measured inputs are in `boards`. What follows from one
(exclusions, probes, metrics) is applied when a plan is made, and not when it is only explained.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cachetools import LRUCache

from troyproxy.accounting.finished import Finished
from troyproxy.auto import exclusion
from troyproxy.auto.board import Entry
from troyproxy.auto.decision import Decision
from troyproxy.auto.exclusion import FRESH, PROBE_LEAST_S, Record
from troyproxy.auto.fitness import Task
from troyproxy.catalog.combos import Combo
from troyproxy.ports import AutoPlan, Clock, Observer
from troyproxy.proxy.boards import Boards, Field, Key, key_of
from troyproxy.proxy.call import Call, MemoryKey
from troyproxy.proxy.memory import TargetMemory
from troyproxy.proxy.outcome import Target
from troyproxy.routing.candidates import Candidate

BOUND: Final = 10_000

MARKS: Final = ("explored", "known", "probe", "incident", "readmitted")
"""What a decision says of itself in ``x-troy-strategy``."""
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
        self._records: LRUCache[Key, Record] = LRUCache(BOUND)
        self._away: LRUCache[Key, Record] = LRUCache(BOUND)
        """Of those that are excluded or on probation; few, and asked for with every plan."""

    def placed(self, field: Field) -> Sequence[Entry]:
        """Return the pool of *field* with everybody at the place where exclusion has them."""
        if not self._away:
            return field.entries
        now = self.clock.now()
        return [
            entry if key not in self._away else _placed(entry, self._away[key], now)
            for entry, key in zip(field.entries, field.keys, strict=True)
        ]

    def apply(self, call: Call, decided: Iterable[Decided]) -> None:
        """Put what was decided for *call* into force: exclusions begin, a probe is leased, the ledger is told."""
        for made in decided:
            decision = made.decision
            for identity in decision.to_exclude:
                self._exclude(key_of(made.candidates[identity]))
            if decision.probe is not None:
                # Until the attempt begins, which knows how long it may take (`probing`).
                self._lease(key_of(made.candidates[decision.probe]), self.clock.now(), PROBE_LEAST_S)
                call.probe = decision.probe
            if decision.order:
                self._tell(call, made, made.candidates[decision.order[0]])

    def _tell(self, call: Call, made: Decided, first: Candidate) -> None:
        """Tell the ledger and the observer who leads, and why."""
        decision = made.decision
        scores = {one.identity: one.score for one in decision.scored}
        marks = [name for name in MARKS if getattr(decision, name)]
        call.ledger.marks.extend(mark for mark in marks if mark not in call.ledger.marks)
        call.ledger.say(
            f"auto {made.combo.name}: task {made.task}, specificity {made.specificity:.0f}, {' '.join(marks)}"
        )
        call.ledger.say("  " + ", ".join(f"{name} {scores[name]:.4f}" for name in decision.order[:SHOWN]))
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

    def probing(self, target: Target) -> None:
        """The probe of an exclusion begins: nobody else probes while it may take."""
        self._lease(_key(target), target.started_at, target.limit_s)

    def served(self, keys: Collection[MemoryKey], target: Target) -> None:
        """*target* has begun to answer: that is remembered under *keys*, and a good probe whatever follows."""
        key = _key(target)
        self.memory.served(keys, *key)
        record = self._away.get(key)
        if record is not None:
            self._put(key, exclusion.attempted(record, self.clock.now(), ok=True, began=target.started_at))

    def attempted(self, attempt: Finished) -> None:
        """Learn from a finished attempt of this process, whatever asked for it."""
        key = (attempt.provider, attempt.model, attempt.account)
        before, now = self._record(key), self.clock.now()
        if attempt.ok is None:
            self._put(key, exclusion.returned(before, began=attempt.at))
            return
        after = exclusion.attempted(before, now, ok=attempt.ok, began=attempt.at)
        self._put(key, after)
        if not attempt.ok:
            self.memory.failed(*key)
        if after.until is not None and after.until != before.until:
            self._observer.auto_excluded(attempt.provider, attempt.model, "probe" if before.until else "failures")

    def heard(self, attempt: Finished) -> None:
        """Learn what another instance tells of its attempt: what it remembers of it, and what it forgot."""
        key = (attempt.provider, attempt.model, attempt.account)
        if attempt.ok:
            self.memory.served(attempt.remember, *key)
        elif attempt.ok is False:
            self.memory.failed(*key)

    def record(self, candidate: Candidate) -> Record:
        """Return what is remembered of *candidate*, for explanations."""
        return self._record(key_of(candidate))

    def _record(self, key: Key) -> Record:
        found: Record | None = self._away.get(key)
        return found if found is not None else self._records.get(key, FRESH)

    def _put(self, key: Key, record: Record) -> None:
        here, there = (self._records, self._away) if record.until is None else (self._away, self._records)
        here[key] = record
        there.pop(key, None)

    def _lease(self, key: Key, now: float, limit_s: float) -> None:
        before = self._away.get(key)
        if before is not None:
            self._put(key, exclusion.leased(before, now, limit_s=limit_s))

    def _exclude(self, key: Key) -> None:
        if key not in self._away:  # by another combo of the same plan
            self._put(key, exclusion.excluded(self._record(key), self.clock.now()))
            self._observer.auto_excluded(key[0], key[1], "score")


def _key(target: Target) -> Key:
    return target.provider.id, target.candidate.model, target.account.name


def _placed(entry: Entry, record: Record, now: float) -> Entry:
    return replace(entry, place=exclusion.place(record, now), back_at=record.until or 0.0)
