"""What the model of `test_walk_machine` keeps: locks, circuits, and each request on its way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.proxy.walk_answers import Answer


class Pair(NamedTuple):
    provider: str
    account: str
    model: str


class Key(NamedTuple):
    """What a lock holds; ``*`` is any."""

    provider: str
    account: str
    model: str
    hard: bool


@dataclass(slots=True)
class Lock:
    """Ends between *low* and *high*: jitter is the gateway's to draw."""

    low: float
    high: float
    set_at: float
    level: int
    outcome: str


@dataclass(slots=True, eq=False)
class Seen:
    """One attempt, as the upstream saw it. *over*: its record is closed; *judged*: an outcome was recorded."""

    pair: Pair
    at: float
    answer: Answer
    wait_s: float
    asked_usage: bool
    outcome: str = "cancelled"
    served: bool = False
    judged: bool = False
    over: bool = False


@dataclass(slots=True, eq=False)
class Flight:
    """One request on its way; answers beyond its last are good ones."""

    chain: Sequence[Pair]
    stream: bool
    answers: Sequence[tuple[Answer, float]]
    began: float
    attempts: list[Seen] = field(default_factory=list)
    stopped: bool = False
    closed: set[tuple[str, str]] = field(default_factory=set)
    faults: Counter[str] = field(default_factory=Counter)
    passed: set[Pair] = field(default_factory=set)
    """Pairs that were softly locked at some moment at which this walk looked."""
    barred: set[Pair] = field(default_factory=set)
    """Pairs that were hard-locked, or whose circuit denied, at such a moment."""

    def next_answer(self) -> tuple[Answer, float]:
        at = len(self.attempts)
        return self.answers[at] if at < len(self.answers) else (Answer.OK, 0.1)

    @property
    def served(self) -> bool:
        return any(seen.served for seen in self.attempts)

    def is_out(self, pair: Pair) -> bool:
        """Whether *pair* has had its turn in this walk, or was closed to it."""
        tried = any(seen.pair == pair for seen in self.attempts)
        closed = (pair.provider, pair.model) in self.closed or self.faults[pair.provider] >= 3
        return tried or closed or pair in self.barred


class Outcome(NamedTuple):
    """What an attempt said of its circuit. *lasting*: it is in the journal."""

    at: float
    good: bool
    lasting: bool


@dataclass(slots=True)
class Circuit:
    """Closed while *until* is None."""

    outcomes: list[Outcome] = field(default_factory=list)
    opened_at: float = 0.0
    until: float | None = None
    wait_s: float = 0.0
    probe: Flight | None = None
    doubtful: bool = False
    """Whether it opened just now hangs on outcomes that are just about a minute old."""

    def state(self, now: float) -> str:
        if self.until is None:
            return "closed"
        return "open" if now < self.until else "half_open"

    def admits(self, flight: Flight, now: float) -> bool:
        state = self.state(now)
        return state == "closed" or (state == "half_open" and self.probe in {None, flight})

    def open(self, now: float, wait_s: float) -> None:
        self.outcomes, self.probe = [], None
        self.opened_at, self.until, self.wait_s = now, now + wait_s, wait_s

    def adopt(self, state: str, until: float, wait_s: float) -> None:
        """Take over what cannot be known better."""
        self.doubtful = False
        if state == "closed":
            self.until = None
        elif self.until is None or self.until != until:
            self.open(until - wait_s, wait_s)
            self.until = until

    def count(self, outcome: Outcome) -> None:
        """Three failures within the minute, if they are half of all, open it."""
        self.outcomes.append(outcome)
        now = outcome.at
        recent = [each.good for each in self.outcomes if each.at > now - 60.0]
        failed = recent.count(False)
        self.doubtful = any(now - 61.0 < each.at <= now - 60.0 for each in self.outcomes)
        if not outcome.good and failed >= 3 and 2 * failed >= len(recent) and not self.doubtful:
            self.open(now, 30.0)
