"""What the walk may do, told a second time and simply, from the design's tables: the judge of `test_walk_machine`.

`Book` hears of every attempt and of every outcome, in the order in which they happen, and holds what the state must be
now: locks, back-off levels, circuits, the retry budget. It shares no code with the walk or with `resilience`; it looks
into the gateway's state only to compare. What does not hold is written down in `wrong`, not raised: an assertion in the
middle of a walk would be one more way for it to end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tests.proxy.walk_answers import MEANINGS, Answer, Meaning, Over, Then
from tests.proxy.walk_things import Circuit, Flight, Key, Lock, Outcome, Pair, Seen

WALK_S: Final = 60.0
"""The deadline of a whole walk in this play, in seconds."""
FLOOR: Final = 10
"""Attempts beyond the first, in ten seconds, that cost no budget in this play."""
RATIO: Final = 0.2
MEMORY_S: Final = 3600.0
ANY: Final = "*"


class Book:
    """The whole model."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.locks: dict[Key, Lock] = {}
        self.circuits: dict[tuple[str, str], Circuit] = {}
        self.learned: dict[tuple[str, str], float] = {}
        self.requests: list[float] = []
        self.retries: list[float] = []

    def check(self, holds: bool, claim: str) -> None:
        if not holds:
            self.wrong.append(claim)

    def circuit(self, pair: Pair) -> Circuit:
        return self.circuits.setdefault((pair.provider, pair.model), Circuit())

    def ends(self, pair: Pair, now: float, *, hard: bool) -> list[Lock]:
        """Return the locks over *pair* that are in force, the longest last."""
        provider, account, model = pair
        keys = ((account, model), (account, ANY), (ANY, model))
        found = (self.locks.get(Key(provider, *key, hard)) for key in keys)
        return sorted((lock for lock in found if lock and lock.high > now), key=lambda lock: lock.high)

    # --- a walk ---

    def look(self, flight: Flight, now: float) -> None:
        """A moment at which *flight* may pass pairs over."""
        for pair in flight.chain:
            if self.ends(pair, now, hard=True) or not self.circuit(pair).admits(flight, now):
                flight.barred.add(pair)
            elif self.ends(pair, now, hard=False):
                flight.passed.add(pair)

    def sends(self, flight: Flight, pair: Pair, now: float, *, asked_usage: bool) -> Seen:
        """An attempt begins."""
        self.look(flight, now)
        again = bool(flight.attempts) and flight.attempts[-1].pair == pair
        name = f"{pair} at {now:.3f}"
        self.check(not flight.served and not flight.stopped, f"{name}: called after the walk's end")
        self.check(self.circuit(pair).admits(flight, now), f"{name}: called on a circuit that denies")
        self.check(not self.ends(pair, now, hard=True), f"{name}: called while hard-locked")
        if again:
            self.check(self._may_repeat(flight), f"{name}: tried twice")
        else:
            self.check(not any(seen.pair == pair for seen in flight.attempts), f"{name}: tried twice")
            self._check_turn(flight, pair, now)
        learned_at = self.learned.get((pair.provider, pair.model), -MEMORY_S)
        remembered = learned_at < flight.began and now < learned_at + MEMORY_S
        self.check(not (asked_usage and remembered), f"{name}: sent what this model has just refused")
        self._count(flight, now)
        if self.circuit(pair).state(now) == "half_open":
            self.circuit(pair).probe = flight
        answer, wait_s = flight.next_answer()
        flight.attempts.append(Seen(pair, now, answer, wait_s, asked_usage))
        return flight.attempts[-1]

    @staticmethod
    def _may_repeat(flight: Flight) -> bool:
        last = flight.attempts[-1]
        before = [seen for seen in flight.attempts if seen.pair == last.pair]
        return len(before) == 1 and last.answer is Answer.UNKNOWN_FIELD and last.asked_usage and not last.judged

    def _check_turn(self, flight: Flight, pair: Pair, now: float) -> None:
        closed = (pair.provider, pair.model) in flight.closed
        self.check(not closed, f"{pair} at {now:.3f}: another account after a failure that forbids it")
        if self.ends(pair, now, hard=False):
            free = [p for p in flight.chain if p != pair and p not in flight.passed and not flight.is_out(p)]
            self.check(not free, f"{pair} at {now:.3f}: called while softly locked, before {free}")

    def _count(self, flight: Flight, now: float) -> None:
        if not flight.attempts:
            return
        self.check(self._budget_left(now, 9.0, 10.0) >= 1, f"a retry beyond the budget at {now:.3f}")
        self.retries.append(now)

    def _budget_left(self, now: float, retries_s: float, requests_s: float) -> float:
        retries = sum(at > now - retries_s for at in self.retries)
        return RATIO * sum(at > now - requests_s for at in self.requests) + FLOOR - retries

    # --- outcomes ---

    def learns(self, flight: Flight, now: float) -> None:
        last = flight.attempts[-1]
        self.check(last.answer is Answer.UNKNOWN_FIELD and last.asked_usage, f"{last.pair}: learned from {last.answer}")
        self.learned[last.pair.provider, last.pair.model] = now
        last.outcome = "model"
        self.look(flight, now)

    def succeeded(self, flight: Flight, now: float) -> None:
        seen = flight.attempts[-1]
        self.check(seen.answer in {Answer.OK, Answer.CUT}, f"{seen.pair}: a success from {seen.answer}")
        seen.served = seen.judged = True
        seen.outcome = "ok"
        own = self.locks.get(Key(*seen.pair, hard=True))
        cleared = own is not None and own.level > 0
        if own is not None:
            own.level = 0
        self._outcome(flight, seen, Outcome(now, good=True, lasting=cleared))

    def failed(self, flight: Flight, now: float) -> None:
        seen = flight.attempts[-1]
        meaning = self._meaning(flight, seen, now)
        seen.judged, seen.outcome = True, meaning.outcome
        if meaning.over is not Over.NOTHING:
            self._lock(seen, meaning, now)
        self._outcome(flight, seen, Outcome(now, good=False, lasting=True), neutral=not meaning.counts)
        flight.faults[seen.pair.provider] += meaning.transport
        flight.stopped = flight.stopped or meaning.then is Then.STOP
        if meaning.then is Then.MEMBER:
            flight.closed.add((seen.pair.provider, seen.pair.model))

    def _meaning(self, flight: Flight, seen: Seen, now: float) -> Meaning:
        took_s = now - seen.at
        if took_s >= seen.wait_s - 1e-3 and seen.answer is not Answer.HANG:
            self.check(seen.answer is not Answer.OK, f"{seen.pair}: a failure from a good answer")
            return MEANINGS[seen.answer]
        late = now >= flight.began + WALK_S - 1e-3
        self.check(took_s >= 5.0 - 1e-3 or late, f"{seen.pair}: cut after {took_s:.3f} s")
        return MEANINGS[Answer.HANG]

    def _lock(self, seen: Seen, meaning: Meaning, now: float) -> None:
        provider, account, model = seen.pair
        owner = {Over.ACCOUNT: (account, ANY), Over.MODEL: (ANY, model)}.get(meaning.over, (account, model))
        key = Key(provider, *owner, meaning.hard)
        old = self.locks.get(key)
        level = old.level if old is not None and now <= old.high + MEMORY_S else 0
        if meaning.outcome == "rate" and not (level and old is not None and seen.at < old.set_at):
            level = min(level + 1, 15)
        low_s, high_s = meaning.lock_s or _backoff_s(level)
        new = Lock(now + low_s, now + high_s, now, level, meaning.outcome)
        if old is not None and old.high > new.high:
            old.level, old.low = level, max(old.low, new.low)
        else:
            new.low = max(new.low, old.low if old is not None else 0.0)
            self.locks[key] = new

    def _outcome(self, flight: Flight, seen: Seen, outcome: Outcome, *, neutral: bool = False) -> None:
        circuit, now = self.circuit(seen.pair), outcome.at
        state = circuit.state(now)
        if state == "open" or seen.at <= circuit.opened_at:
            return
        if state == "closed":
            if not neutral:
                circuit.count(outcome)
            return
        self.check(circuit.probe is flight, f"{seen.pair}: an outcome without the probe")
        circuit.probe = None
        if neutral:
            return
        if outcome.good:
            circuit.until, circuit.outcomes = None, []
        else:
            circuit.open(now, min(2 * circuit.wait_s, 300.0))

    def gave_back(self, flight: Flight) -> None:
        circuit = self.circuit(flight.attempts[-1].pair)
        circuit.probe = None if circuit.probe is flight else circuit.probe

    # --- ends ---

    def refused(self, flight: Flight, retry_after: str, now: float, *, rate_limited: bool) -> None:
        """The request found nobody to ask."""
        self.requests.remove(flight.began)
        free = [pair for pair in flight.chain if pair not in flight.barred]
        self.check(not free, f"refused at {now:.3f} with {free} free")
        circuits = [self.circuit(pair) for pair in flight.chain]
        if any(circuit.probe for circuit in circuits):
            return
        waits = [
            max([lock.high for lock in self.ends(pair, now, hard=True)] + [circuit.until or 0.0]) - now
            for pair, circuit in zip(flight.chain, circuits, strict=True)
        ]
        self.check(int(retry_after) == max(1, math.ceil(min(waits))), f"retry-after {retry_after} for {waits}")
        if all(circuit.until is None for circuit in circuits):
            reasons = {self.ends(pair, now, hard=True)[-1].outcome for pair in flight.chain}
            self.check(rate_limited == (reasons == {"rate"}), f"429 is {rate_limited} for {reasons}")

    def finished(self, flight: Flight, outcomes: Sequence[str], now: float, *, status: int, spent: bool) -> None:
        """The request has its answer, and its client is still there."""
        expected = [seen.outcome for seen in flight.attempts]
        self.check(list(outcomes) == expected, f"{outcomes} told, {expected} happened")
        self.check((status == 200) == flight.served, f"status {status} after {outcomes}")
        if spent:
            self.check(self._budget_left(now, 10.0, 9.0) < 1, f"the budget was called spent at {now:.3f}")
        elif not flight.served and not flight.stopped and now < flight.began + WALK_S - 1e-3:
            left = [pair for pair in flight.chain if not flight.is_out(pair)]
            self.check(not left, f"given up at {now:.3f} with {left} untried")

    # --- from outside the walk ---

    def cleared(self, provider: str | None, account: str | None, model: str | None) -> None:
        def matches(*have: str) -> bool:
            return all(want in {None, got} for want, got in zip((provider, account, model), have, strict=True))

        self.locks = {key: lock for key, lock in self.locks.items() if not matches(*key[:3])}
        if account is None:
            kept = {key: value for key, value in self.circuits.items() if not matches(key[0], ANY, key[1])}
            self.circuits = kept

    def restarted(self) -> None:
        """Locks, levels and circuits stay; probes, what was learned, the budget and most successes are gone."""
        for circuit in self.circuits.values():
            circuit.probe = None
            circuit.outcomes = [outcome for outcome in circuit.outcomes if outcome.lasting]
        self.learned, self.requests, self.retries = {}, [], []


def _backoff_s(level: int) -> tuple[float, float]:
    plain_s = min(2.0 * 2 ** (level - 1), 300.0)
    return plain_s * 0.9, min(plain_s * 1.1, 300.0)
