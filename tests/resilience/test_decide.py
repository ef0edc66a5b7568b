"""Live decisions: which events follow from one, and what a failure's event carries."""

from __future__ import annotations

from random import Random

import pytest

from troyproxy.resilience.breaker import Admission, CircuitState
from troyproxy.resilience.classes import ErrorClass, Scope
from troyproxy.resilience.decide import Attempt, decide, failure_event
from troyproxy.resilience.events import (
    CircuitClosed,
    CircuitHalfOpened,
    CircuitOpened,
    Cleared,
    Event,
    Failed,
    ProbeLeased,
    ProbeReturned,
    Succeeded,
)
from troyproxy.resilience.health import EMPTY, Health, HealthPolicy, admission, apply, circuit_state, fold
from troyproxy.resilience.verdict import Verdict

POLICY = HealthPolicy()


def live(health: Health, *events: Event) -> Health:
    """Record *events* as live traffic does."""
    for event in events:
        for each in decide(health, event, POLICY):
            health = apply(health, each, POLICY)
    return health


def fault(
    health: Health, at: float, *, started_at: float | None = None, error_class: ErrorClass = ErrorClass.TRANSIENT
) -> Failed:
    attempt = Attempt("alpha", "m1", "A", at if started_at is None else started_at)
    return failure_event(health, Verdict.of(error_class, "x"), attempt, at=at, rng=Random(1))


def success(at: float, started_at: float) -> Succeeded:
    return Succeeded(at, "alpha", "m1", "A", started_at)


def opened(*, at: float = 2.0) -> Health:
    return live(EMPTY, *(fault(EMPTY, at) for _ in range(3)))


def test_the_third_failure_opens_the_circuit() -> None:
    two = live(EMPTY, fault(EMPTY, 0), fault(EMPTY, 1))
    third = fault(two, 2)
    assert decide(two, third, POLICY) == (third, CircuitOpened(2, "alpha", "m1", 32, 30))


def test_three_failures_among_many_successes_open_nothing() -> None:
    health = live(EMPTY, *(success(1, 0) for _ in range(4)), *(fault(EMPTY, 2) for _ in range(3)))
    assert circuit_state(health, "alpha", "m1", 2) is CircuitState.CLOSED


@pytest.mark.parametrize(
    "error_class", [ErrorClass.RATE, ErrorClass.CANCELLED, ErrorClass.REQUEST, ErrorClass.AUTH, ErrorClass.LEAK]
)
def test_neutral_classes_open_nothing(error_class: ErrorClass) -> None:
    health = live(EMPTY, *(fault(EMPTY, 2, error_class=error_class) for _ in range(9)))
    assert circuit_state(health, "alpha", "m1", 2) is CircuitState.CLOSED


def test_the_first_probe_half_opens() -> None:
    leased = ProbeLeased(32, "alpha", "m1", 60)
    assert decide(opened(), leased, POLICY) == (CircuitHalfOpened(32, "alpha", "m1"), leased)


def test_the_second_probe_does_not_half_open_again() -> None:
    health = live(opened(), ProbeLeased(32, "alpha", "m1", 60), ProbeReturned(33, "alpha", "m1", 32))
    leased = ProbeLeased(34, "alpha", "m1", 60)
    assert decide(health, leased, POLICY) == (leased,)


def test_of_fifty_concurrent_requests_one_probes() -> None:
    health, probes = opened(), 0
    for _ in range(50):
        if admission(health, "alpha", "m1", 32) is Admission.PROBE:
            probes += 1
            health = live(health, ProbeLeased(32, "alpha", "m1", 60))
    assert probes == 1


def test_a_probe_that_succeeds_closes() -> None:
    health = live(opened(), ProbeLeased(32, "alpha", "m1", 60))
    assert decide(health, success(33, 32), POLICY)[1:] == (CircuitClosed(33, "alpha", "m1"),)


def test_a_probe_that_fails_opens_for_twice_as_long() -> None:
    health = live(opened(), ProbeLeased(32, "alpha", "m1", 60))
    assert decide(health, fault(health, 33, started_at=32), POLICY)[1:] == (CircuitOpened(33, "alpha", "m1", 93, 60),)


def test_a_probe_that_meets_a_rate_limit_gives_its_lease_back() -> None:
    health = live(opened(), ProbeLeased(32, "alpha", "m1", 60))
    health = live(health, fault(health, 33, started_at=32, error_class=ErrorClass.RATE))
    assert admission(health, "alpha", "m1", 33) is Admission.PROBE


def test_a_slow_success_from_before_the_opening_closes_nothing() -> None:
    health = live(opened(), success(33, 1))
    assert circuit_state(health, "alpha", "m1", 33) is CircuitState.HALF_OPEN


def test_a_cut_after_the_closing_is_an_ordinary_first_failure() -> None:
    health = live(opened(), ProbeLeased(32, "alpha", "m1", 60), success(33, 32))
    health = live(health, fault(health, 40, started_at=32))
    assert circuit_state(health, "alpha", "m1", 40) is CircuitState.CLOSED


def test_clearing_closes_the_circuits_it_matches() -> None:
    event = Cleared(5, provider="alpha")
    assert decide(opened(), event, POLICY) == (CircuitClosed(5, "alpha", "m1"), event)


@pytest.mark.parametrize("event", [Cleared(5, provider="beta"), Cleared(5, provider="alpha", account="A")])
def test_clearing_closes_no_other_circuit(event: Cleared) -> None:
    assert decide(opened(), event, POLICY) == (event,)


@pytest.mark.parametrize("event", [ProbeReturned(5, "alpha", "m1", 4), CircuitOpened(5, "alpha", "m1", 35, 30)])
def test_nothing_follows_from_other_events(event: Event) -> None:
    assert decide(EMPTY, event, POLICY) == (event,)


def test_levels_climb_with_consecutive_rate_limits() -> None:
    health, levels = EMPTY, []
    for at in (0.0, 10.0, 20.0):
        event = fault(health, at, error_class=ErrorClass.RATE)
        health = live(health, event)
        levels.append(event.level)
    assert levels == [1, 2, 3]


def test_twenty_concurrent_rate_limits_are_one_level() -> None:
    health = EMPTY
    for n in range(20):
        health = live(health, fault(health, 5 + n / 10, started_at=4, error_class=ErrorClass.RATE))
    assert max(lock.level for lock in health.cooldowns.values()) == 1


def test_a_success_sends_the_level_back_to_the_bottom() -> None:
    health = live(EMPTY, fault(EMPTY, 0, error_class=ErrorClass.RATE), success(9, 8))
    assert fault(health, 10, error_class=ErrorClass.RATE).level == 1


def test_a_hinted_lock_keeps_the_level_of_its_key() -> None:
    health = live(EMPTY, fault(EMPTY, 0, error_class=ErrorClass.RATE))
    verdict = Verdict.of(ErrorClass.TRANSIENT, "503", hint_s=9.0)
    event = failure_event(health, verdict, Attempt("alpha", "m1", "A", 5), at=6, rng=Random(1))
    assert (event.level, event.cooldown_s, event.soft) == (1, 9.0, False)


def test_a_days_worth_of_daily_quota_costs_a_few_dozen_calls() -> None:
    health, calls, verdict = EMPTY, 0, Verdict.of(ErrorClass.RATE, "429", hint_s=1800.0)
    for n in range(1000):
        now = n * 86.4
        if not any(lock.until > now for lock in health.cooldowns.values()):
            calls += 1
            health = live(
                health, failure_event(health, verdict, Attempt("alpha", "m1", "A", now), at=now, rng=Random(n))
            )
    assert calls <= 48


def test_a_replayed_journal_opens_only_what_was_open() -> None:
    failures = [fault(EMPTY, 2) for _ in range(9)]
    assert circuit_state(fold(failures, POLICY), "alpha", "m1", 2) is CircuitState.CLOSED


def test_a_failure_that_does_not_cool_has_no_lock() -> None:
    event = fault(EMPTY, 2, error_class=ErrorClass.CONTEXT)
    assert (event.cooldown_s, event.scope, event.counts) == (None, Scope.NONE, False)
