"""Who is excluded from the auto engine's orders in this process: for failures, and for scores that are too low.

Failures are the candidate's own and leave it out everywhere. A score is one of a set of weights: who scores too low by
some may be the best by others, so it is left out where those weights are in force, and its success elsewhere says
nothing of its score. The ladder itself is `auto.exclusion`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from troyproxy.accounting.finished import Finished
from troyproxy.auto import exclusion
from troyproxy.auto.board import Entry
from troyproxy.auto.exclusion import FRESH, Place, Record
from troyproxy.ports import Clock, Observer
from troyproxy.proxy.boards import Field, Key
from troyproxy.proxy.bounds import drop, use

BOUND: Final = 10_000
MOST_WEIGHTS: Final = 50
"""Sets of weights by which one candidate is known to score too low; the first go."""


class Exclusions:
    """The records of this process; bounded."""

    def __init__(self, clock: Clock, observer: Observer) -> None:
        self._clock, self._observer = clock, observer
        self._records: dict[Key, Record] = {}
        self._good: dict[Key, deque[float]] = {}
        """When those whose record shows no failure succeeded since it was made: most do nothing else."""
        self._away: dict[Key, Record] = {}
        """Of those that are excluded or on probation for failures; few, and asked for with every plan."""
        self._low: dict[Key, dict[str, Record]] = {}
        """Of those that are so for their score, by weights."""

    def placed(self, field: Field, weights: str) -> Sequence[Entry]:
        """Return the pool of *field* with everybody at the place where exclusion has them under these *weights*."""
        if not (self._away or self._low):
            return field.entries
        now = self._clock.now()
        records = (self._excluded(key, weights) for key in field.keys)
        return [e if r is None else _placed(e, r, now) for e, r in zip(field.entries, records, strict=True)]

    def record(self, key: Key, weights: str) -> Record:
        """Return what is remembered, for explanations."""
        found = self._excluded(key, weights)
        return self._settled(key) if found is None else found

    def exclude(self, key: Key, weights: str) -> None:
        """A score under *weights* is too low: an exclusion begins, unless another combo of the plan began it."""
        low = use(self._low, key, dict[str, Record], BOUND)
        if weights in low:
            return
        if len(low) >= MOST_WEIGHTS:
            del low[next(iter(low))]
        low[weights] = exclusion.excluded(FRESH, self._clock.now())
        self._observer.auto_excluded(key[0], key[1], "score")

    def lease(self, key: Key, limit_s: float, weights: str) -> None:
        """A plan makes *key* its probe, for so long at most."""
        now = self._clock.now()
        low = self._low.get(key, {})
        if weights in low:
            low[weights] = exclusion.leased(low[weights], now, limit_s=limit_s)
        self._lease_away(key, now, limit_s)

    def probing(self, key: Key, at: float, limit_s: float) -> None:
        """The attempt that is the probe begins: nobody else probes while it may take."""
        self._lease_away(key, at, limit_s)
        self._judge(key, lambda low: exclusion.leased(low, at, limit_s=limit_s))

    def on_probation(self, key: Key) -> bool:
        """Whether the next attempt at *key* is the probe of its failures."""
        record = self._away.get(key)
        return record is not None and exclusion.place(record, self._clock.now()) is Place.PROBE

    def served(self, key: Key, began: float) -> None:
        """An attempt has begun to answer: a good probe, whatever follows."""
        if not (self._away or self._low):
            return
        now = self._clock.now()
        record = self._away.get(key)
        if record is not None:
            self._put(key, exclusion.attempted(record, now, ok=True, began=began))
        self._judge(key, lambda low: exclusion.attempted(low, now, ok=True, began=began))

    def attempted(self, attempt: Finished) -> None:
        """Learn from a finished attempt of this process, whatever asked for it."""
        key, ok, began = (attempt.provider, attempt.model, attempt.account), attempt.ok, attempt.at
        good, now = self._good.get(key), self._clock.now()
        if ok and good is not None and not self._low:
            good.append(now)
            return
        before = self._settled(key)
        if ok is None:
            self._put(key, exclusion.returned(before, began=began))
            self._judge(key, lambda low: exclusion.returned(low, began=began))
            return
        after = exclusion.attempted(before, now, ok=ok, began=began)
        self._put(key, after)
        self._judge(key, lambda low: exclusion.attempted(low, now, ok=ok, began=began))
        if after.until is not None and after.until != before.until:
            self._observer.auto_excluded(key[0], key[1], "probe" if before.until else "failures")

    def _excluded(self, key: Key, weights: str) -> Record | None:
        record: Record | None = self._away.get(key)
        return record if record is not None else self._low.get(key, {}).get(weights)

    def _settled(self, key: Key) -> Record:
        """Return the record of *key*, with the successes that were only counted."""
        record = self._away.get(key) or self._records.get(key, FRESH)
        good = self._good.pop(key, None)
        if good:
            for at in good:
                record = exclusion.attempted(record, at, ok=True)
            self._put(key, record)
        return record

    def _put(self, key: Key, record: Record) -> None:
        """Keep *record*. While it shows no failure no success can exclude, so those are only counted."""
        if record.until is None and all(succeeded for _, succeeded in record.outcomes):
            if len(self._good) >= BOUND:
                drop(self._good, BOUND)
            self._good[key] = deque(maxlen=exclusion.WINDOW)
        here, there = (self._records, self._away) if record.until is None else (self._away, self._records)
        there.pop(key, None)
        here.pop(key, None)  # it is the one used last now
        here[key] = record
        if len(here) > BOUND:
            drop(here, BOUND)

    def _lease_away(self, key: Key, at: float, limit_s: float) -> None:
        before = self._away.get(key)
        if before is not None:
            self._put(key, exclusion.leased(before, at, limit_s=limit_s))

    def _judge(self, key: Key, verdict: Callable[[Record], Record]) -> None:
        """Let *verdict* fall on the low scores whose term is over; until then nothing is said of them."""
        low = self._low.get(key)
        if low is None:
            return
        now = self._clock.now()
        for weights, record in tuple(low.items()):
            if record.until is None or now < record.until:
                continue
            after = low[weights] = verdict(record)
            if after.until is None:
                del low[weights]
            elif after.until != record.until:
                self._observer.auto_excluded(key[0], key[1], "probe")
        if not low:
            del self._low[key]


def _placed(entry: Entry, record: Record, now: float) -> Entry:
    return replace(entry, place=exclusion.place(record, now), back_at=record.until or 0.0)
