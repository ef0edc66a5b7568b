"""The live health state: the pure machine of `resilience` with a clock, a journal and an audience.

Append before apply: an event goes to the journal's queue first, then changes the state that requests see. Replay at
start folds the same events with the same `apply`. Accounts go by their id here, ``<provider>#<name>``.

What other instances learned comes in through `hear`: it is applied and neither journalled nor decided upon.

The ordinary success, which only counts, is held back in `Tallies` and told to nobody; whoever reads the state finds it
counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Final, Protocol

from troyproxy.errors import StoreUnavailable
from troyproxy.ports import Clock, EventLog, Observer
from troyproxy.proxy.outcome import Target
from troyproxy.resilience import health
from troyproxy.resilience.breaker import FRESH, Admission, CircuitState
from troyproxy.resilience.classes import RULES
from troyproxy.resilience.classify import Verdict
from troyproxy.resilience.cooldowns import Cooldown
from troyproxy.resilience.decide import Attempt, decide, failure_event
from troyproxy.resilience.events import (
    CircuitOpened,
    Cleared,
    Event,
    Failed,
    ProbeLeased,
    ProbeReturned,
    Succeeded,
    is_journalled,
)
from troyproxy.resilience.health import EMPTY, CircuitKey, Health, HealthPolicy
from troyproxy.resilience.shared import clearing_moment, is_lifted, shared_of, takes
from troyproxy.resilience.tallies import Tallies

PRUNE_EVERY: Final = 256
"""Recorded events between two clean-ups of what has lost its effect."""
CATCH_UP_S: Final = 0.5
"""Between two looks at a journal that could not be read at the start."""
CLEARINGS: Final = 1024
"""Clearings that are remembered, so that none is carried out twice or undone by the journal; the oldest go first."""


class Listener(Protocol):
    """Hears every event of our own, and every clearing, after it was applied. Must not wait and must not raise."""

    def __call__(self, event: Event, *, private: bool) -> None:
        """*private*: it is about this process only."""
        ...


class HealthKeeper:
    """Owns the state of breakers and cooldowns of this process."""

    def __init__(self, *, clock: Clock, log: EventLog, observer: Observer, policy: HealthPolicy, rng: Random) -> None:
        self._clock, self._log, self._observer = clock, log, observer
        self._policy, self._rng = policy, rng
        self._until_prune = PRUNE_EVERY
        self._listeners: list[Listener] = []
        self._watchers: list[Callable[[Event], None]] = []
        self._clearings: deque[Cleared] = deque(maxlen=CLEARINGS)
        self._turned: tuple[CircuitKey, ...] | None = ()
        """The circuits that are not closed as they are stored; None: to be looked up."""
        self._restored = False
        self._state: Health = EMPTY
        """Without what is held back: good for everything but the counts of closed circuits."""
        self._tallies = Tallies(policy)

    @property
    def state(self) -> Health:
        """The whole state, with everything counted."""
        self._state = self._tallies.settled(self._state)
        return self._state

    def tell(self, listener: Listener) -> None:
        """Tell *listener* of every event of our own from now on, but for successes that only count."""
        self._listeners.append(listener)

    def watch(self, watcher: Callable[[Event], None]) -> None:
        """Tell *watcher* of every event that is applied from now on, others' too, but for successes that only count."""
        self._watchers.append(watcher)

    async def restore(self) -> None:
        """Fold the journal: locks, levels and open circuits come back with their remaining time.

        Raises StoreUnavailable; then the state is as it was, and `follow` will catch up.
        """
        self._restored = False
        journalled = await self._journalled()
        self._tallies = Tallies(self._policy)  # what was counted before is forgotten, as in any other start
        self._state, self._turned = journalled, None
        self._restored = True

    async def follow(self) -> None:
        """After a start without the journal, catch up with it as soon as it can be read."""
        while not self._restored:
            await self._clock.sleep(CATCH_UP_S)
            with suppress(StoreUnavailable):
                await self._catch_up()

    async def _catch_up(self) -> None:
        """Take over from the journal what this process does not know better.

        Locks merge by their later end, unless they were cleared meanwhile; a circuit that has been used here stays as
        it is. Back-off levels and counts are not taken over.
        """
        journalled, now = await self._journalled(), self._clock.now()
        for event in shared_of(journalled, now):
            used = isinstance(event, CircuitOpened) and self._used(event)
            if takes(self.state, event, now) and not used and not is_lifted(event, self._clearings):
                self._apply(event)
        self._restored = True

    async def _journalled(self) -> Health:
        folded = health.fold(await self._log.replay(), self._policy)
        return health.prune(folded, self._clock.now(), self._policy)

    def _used(self, event: CircuitOpened) -> bool:
        return health.breaker_of(self.state, event.provider, event.model) is not FRESH

    def calm(self, now: float) -> bool:
        """Whether every circuit is closed and nobody is locked at *now*: then health bars nobody and orders nobody."""
        locks = self._state.cooldowns
        if self._turned is None or self._turned or (locks and any(lock.until > now for lock in locks.values())):
            return not (self._not_closed() or self.cooling(now))
        return True

    def admission(self, provider: str, model: str) -> Admission:
        """Whether a call to this target may start now."""
        if self._turned == ():  # as almost always
            return Admission.ADMIT
        return health.admission(self._state, provider, model, self._clock.now())

    def circuit(self, provider: str, model: str) -> CircuitState:
        """Return the state of the target's circuit now."""
        if self._turned == ():
            return CircuitState.CLOSED
        return health.circuit_state(self._state, provider, model, self._clock.now())

    def circuits(self, now: float) -> Mapping[CircuitKey, CircuitState]:
        """Return the circuits that are not closed at *now*."""
        return {key: health.circuit_state(self._state, key.provider, key.model, now) for key in self._not_closed()}

    def _not_closed(self) -> tuple[CircuitKey, ...]:
        """Return the circuits that are stored as open or half-open: time alone turns no other."""
        if self._turned is None:
            breakers = self._state.breakers.items()
            self._turned = tuple(key for key, breaker in breakers if breaker.stored is not CircuitState.CLOSED)
        return self._turned

    def cooling(self, now: float) -> frozenset[str]:
        """Return the providers of which some account or model is locked at *now*, softly or not."""
        return frozenset(key.provider for key, lock in self._state.cooldowns.items() if lock.until > now)

    def cooldown(self, provider: str, account: str, model: str) -> Cooldown | None:
        """Return the lock that holds this pair now."""
        if not self._state.cooldowns:
            return None
        return health.cooldown_of(self._state, provider, account, model, self._clock.now())

    def eligible_at(self, provider: str, account: str, model: str) -> float:
        """Return the earliest moment (unix seconds) at which this pair may be called."""
        return health.eligible_at(self._state, provider, account, model, self._clock.now())

    def lease_probe(self, target: Target) -> None:
        """Hand the half-open circuit's one probe to *target*; no await between asking and this."""
        candidate = target.candidate
        until = target.started_at + target.limit_s
        self.record(ProbeLeased(self._clock.now(), target.provider.id, candidate.model, until))

    def return_probe(self, target: Target) -> None:
        """Give the lease back: the attempt ended without an outcome."""
        self.record(ProbeReturned(self._clock.now(), target.provider.id, target.candidate.model, target.started_at))

    def failed(self, target: Target, verdict: Verdict) -> None:
        """Record a failed attempt."""
        attempt = Attempt(target.provider.id, target.candidate.model, target.account.id, target.started_at)
        now = self._clock.now()
        drawn = target.seed is not None and RULES[verdict.error_class].jitter  # seeding one costs more than the rest
        rng = Random(target.seed) if drawn else self._rng  # noqa: S311 -- jitter, replayable
        self.record(failure_event(self._state, verdict, attempt, at=now, rng=rng))

    def succeeded(self, target: Target) -> None:
        """Record a success: first output of a stream, or a valid body."""
        now, provider, model = self._clock.now(), target.provider.id, target.candidate.model
        if not self._tallies.add(self._state, provider, model, at=now, started_at=target.started_at):
            self.record(Succeeded(now, provider, model, target.account.id, target.started_at))

    def clear(self, provider: str | None = None, account: str | None = None, model: str | None = None) -> Cleared:
        """Lift the locks that match, here and on other instances; None matches all. Return what others must do."""
        cleared = Cleared(clearing_moment(self.state, self._clock.now()), provider, account, model)
        self.record(cleared)
        return cleared

    def forget(self, provider: str, account: str) -> None:
        """Lift the locks of an account whose configuration changed. Every instance does that for itself."""
        moment = clearing_moment(self.state, self._clock.now())
        self.record(Cleared(moment, provider, account), private=True)

    def record(self, event: Event, *, private: bool = False) -> None:
        """Journal *event* and what follows from it where it matters for a restart, apply it, tell of it."""
        for each in decide(self.state, event, self._policy):
            if is_journalled(self._state, each):
                self._log.append(each)
            self._apply(each)
            self._tell(each, private=private)
        self._until_prune -= 1
        if self._until_prune <= 0:
            self._until_prune = PRUNE_EVERY
            self._state = health.prune(self._state, self._clock.now(), self._policy)

    def hear(self, event: Event) -> None:
        """Apply what another instance learned (`shared.takes` says what is worth it).

        A clearing comes by the mirror and by the control row, from the process that gave it, too: it counts once.
        """
        if isinstance(event, Cleared) and event in self._clearings:
            return
        follows = decide(self.state, event, self._policy) if isinstance(event, Cleared) else (event,)
        for each in follows:
            self._apply(each)
        if isinstance(event, Cleared):
            self._tell(event, private=False)

    def _tell(self, event: Event, *, private: bool) -> None:
        for listener in self._listeners:
            listener(event, private=private)

    def _apply(self, event: Event) -> None:
        if isinstance(event, Cleared):
            self._clearings.append(event)
        before = self.state
        self._state = health.apply(before, event, self._policy)
        if not isinstance(event, Failed | Succeeded):
            self._turned = None
        self._observe(before, event)
        for watcher in self._watchers:
            watcher(event)

    def _observe(self, before: Health, event: Event) -> None:
        turned = health.transition_of(before, event)
        if turned is not None and turned[0] is not turned[1] and event.provider is not None and event.model is not None:
            self._observer.circuit_changed(event.provider, event.model, turned[0].value, turned[1].value)
