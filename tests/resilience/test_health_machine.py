"""Random traffic against breakers and cooldowns: what must hold at every moment, and that a replay equals live."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
)

from troyproxy.resilience.breaker import Admission, CircuitState
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.cooldowns import LockKey, level_of
from troyproxy.resilience.decide import Attempt, decide, failure_event
from troyproxy.resilience.events import (
    Cleared,
    Event,
    ProbeLeased,
    ProbeReturned,
    Succeeded,
    from_record,
    is_journalled,
    to_record,
)
from troyproxy.resilience.health import (
    EMPTY,
    Health,
    HealthPolicy,
    admission,
    apply,
    circuit_state,
    circuits,
    fold,
    prune,
    transition_of,
)
from troyproxy.resilience.verdict import Verdict

POLICY = HealthPolicy()
MODELS = ("m1", "m2")
ACCOUNTS = ("A", "B")
LEASE_S = 20.0
COMMON = (ErrorClass.TRANSIENT, ErrorClass.OVERLOAD, ErrorClass.RATE)


@dataclass(frozen=True)
class Flight:
    """An attempt in flight; *lease_until* is None unless it is a probe."""

    attempt: Attempt
    lease_until: float | None


def restart_view(health: Health, now: float) -> object:
    """Return what a restart must bring back: locks in force, levels, circuits that are not closed."""
    locks = {key: (lock.until, lock.error_class) for key, lock in health.cooldowns.items() if lock.until > now}
    levels = {key: level for key in health.cooldowns if (level := level_of(health.cooldowns, key, now))}
    turned = {
        key: (value.stored, value.until, value.open_s, value.opened_at)
        for key, value in health.breakers.items()
        if value.stored is not CircuitState.CLOSED
    }
    return locks, levels, turned


class Traffic(RuleBasedStateMachine):
    """Two models, two accounts, many attempts in flight, one virtual clock."""

    flights = Bundle("flights")

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.health = EMPTY
        self.journal: list[dict[str, object]] = []
        self.in_flight: list[Flight] = []
        self.delayed: list[Flight] = []
        self.hard: dict[LockKey, float] = {}
        self.told: dict[str, CircuitState] = {}
        self.rng = Random(7)

    def record(self, event: Event) -> None:
        for each in decide(self.health, event, POLICY):
            if is_journalled(self.health, each):
                self.journal.append(to_record(each))
            if (turned := transition_of(self.health, each)) is not None:
                self.told[each.model or ""] = turned[1]
            self.health = apply(self.health, each, POLICY)
        if isinstance(event, Cleared):
            self.hard = {}

    def land(self, flight: Flight) -> None:
        self.in_flight.remove(flight)

    @rule(seconds=st.sampled_from([0.25, 1.0, 3.0, 31.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(target=flights, model=st.sampled_from(MODELS), account=st.sampled_from(ACCOUNTS))
    def take_off(self, model: str, account: str) -> Flight | MultipleResults[Flight]:
        """Begin a call that ends some time later; one that is denied never was."""
        return self.start(model, account) or multiple()

    def start(self, model: str, account: str) -> Flight | None:
        admitted = admission(self.health, "alpha", model, self.now)
        state = circuit_state(self.health, "alpha", model, self.now)
        assert (admitted is Admission.ADMIT) == (state is CircuitState.CLOSED)
        if admitted is Admission.DENY:
            return None
        flight = Flight(Attempt("alpha", model, account, self.now), None)
        if admitted is Admission.PROBE:
            assert state is CircuitState.HALF_OPEN
            until = self.now + LEASE_S
            self.record(ProbeLeased(self.now, "alpha", model, until))
            flight = Flight(flight.attempt, until)
        self.in_flight.append(flight)
        return flight

    @rule(
        model=st.sampled_from(MODELS),
        hints=st.lists(st.sampled_from([None, None, 1.0, 900.0]), min_size=1, max_size=5),
        error_class=st.sampled_from(COMMON),
    )
    def storm(self, model: str, hints: list[float | None], error_class: ErrorClass) -> None:
        """Calls that all begin at once and fail alike, but for what their hints say."""
        flights = [self.start(model, ACCOUNTS[n % 2]) for n in range(len(hints))]
        self.now += 0.5
        for flight, hint_s in zip(flights, hints, strict=True):
            if flight is not None:
                self.fail(flight, error_class, hint_s)

    @rule(model=st.sampled_from(MODELS), account=st.sampled_from(ACCOUNTS))
    def slow_probe(self, model: str, account: str) -> None:
        """A call outlives its lease, the next begins, and only then the first hangs up."""
        first = self.start(model, account)
        self.now += LEASE_S
        second = self.start(model, account)
        if first is not None:
            self.hang_up(first)
        if second is not None:
            self.delayed.append(second)

    @precondition(lambda self: self.delayed)
    @rule()
    def land_the_second(self) -> None:
        self.succeed(self.delayed.pop())

    @rule(model=st.sampled_from(MODELS), account=st.sampled_from(ACCOUNTS))
    def recover(self, model: str, account: str) -> None:
        flight = self.start(model, account)
        self.now += 0.5
        if flight is not None:
            self.succeed(flight)

    @rule(flight=consumes(flights))
    def succeed(self, flight: Flight) -> None:
        self.land(flight)
        a = flight.attempt
        self.record(Succeeded(self.now, a.provider, a.model, a.account, a.started_at))

    @rule(
        flight=consumes(flights),
        error_class=st.sampled_from(COMMON) | st.sampled_from(ErrorClass),
        hint_s=st.sampled_from([None, None, 1.0, 900.0]),
    )
    def fail(self, flight: Flight, error_class: ErrorClass, hint_s: float | None) -> None:
        self.land(flight)
        verdict = Verdict.of(error_class, "x", hint_s=hint_s)
        self.record(failure_event(self.health, verdict, flight.attempt, at=self.now, rng=self.rng))

    @rule(flight=consumes(flights))
    def hang_up(self, flight: Flight) -> None:
        self.land(flight)
        self.record(ProbeReturned(self.now, "alpha", flight.attempt.model, flight.attempt.started_at))

    @precondition(lambda self: len(self.journal) % 5 == 4)
    @rule(account=st.none() | st.sampled_from(ACCOUNTS), model=st.sampled_from(MODELS))
    def clear(self, account: str | None, model: str) -> None:
        self.record(Cleared(self.now, "alpha", account, model))

    @rule()
    def tidy(self) -> None:
        self.health = prune(self.health, self.now, POLICY)

    @invariant()
    def at_most_one_probe_holds_a_lease(self) -> None:
        for model in MODELS:
            state = circuit_state(self.health, "alpha", model, self.now)
            probes = [
                f
                for f in self.in_flight
                if f.lease_until is not None and f.lease_until > self.now and f.attempt.model == model
            ]
            assert state is not CircuitState.HALF_OPEN or len(probes) <= 1

    @invariant()
    def a_replay_equals_live(self) -> None:
        replayed = fold([from_record(record) for record in self.journal], POLICY)
        live = prune(self.health, self.now, POLICY)
        assert restart_view(prune(replayed, self.now, POLICY), self.now) == restart_view(live, self.now)

    @invariant()
    def a_hard_lock_is_never_shortened(self) -> None:
        found = {
            key: lock.until for key, lock in self.health.cooldowns.items() if lock.until > self.now and not key.soft
        }
        for key, until in self.hard.items():
            assert until <= self.now or found[key] >= until
        self.hard = found

    @invariant()
    def what_was_told_is_the_state(self) -> None:
        for status in circuits(self.health, self.now):
            told = self.told.get(status.model, CircuitState.CLOSED)
            by_time = told is CircuitState.OPEN and status.state is CircuitState.HALF_OPEN
            assert told is status.state or by_time


Traffic.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestTraffic = Traffic.TestCase
