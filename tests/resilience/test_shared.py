"""Merging what other instances say: in any order, any number of times, and nobody shortens what another set."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.resilience.breaker import CircuitState
from troyproxy.resilience.classes import ErrorClass, Scope
from troyproxy.resilience.cooldowns import LockKey
from troyproxy.resilience.decide import decide
from troyproxy.resilience.events import (
    CircuitClosed,
    CircuitHalfOpened,
    CircuitOpened,
    Cleared,
    Event,
    Failed,
    Locked,
    ProbeLeased,
    Succeeded,
    from_record,
    is_journalled,
    to_record,
)
from troyproxy.resilience.health import EMPTY, Health, HealthPolicy, apply, circuit_state, cooldown_of, fold
from troyproxy.resilience.shared import AHEAD_S, FURTHEST_S, clearing_moment, is_lifted, shared_of, takes

POLICY = HealthPolicy()
NOW = 1000.0


def locked(until: float = NOW + 60, *, at: float = NOW - 5, account: str = "A", model: str = "m1") -> Locked:
    return Locked(at, "alpha", account, model, until, soft=False, error_class=ErrorClass.RATE)


def opened(until: float = NOW + 30, *, at: float = NOW - 5, open_s: float = 30.0) -> CircuitOpened:
    return CircuitOpened(at, "alpha", "m1", until, open_s)


def failed(cooldown_s: float | None = 60.0, level: int = 3) -> Failed:
    return Failed(
        NOW - 1,
        "alpha",
        "m1",
        "A",
        ErrorClass.RATE,
        None,
        cooldown_s,
        soft=False,
        scope=Scope.PAIR,
        started_at=NOW - 2,
        level=level,
        counts=True,
    )


def heard(*events: Event, health: Health = EMPTY, now: float = NOW) -> Health:
    """Return *health* after hearing *events*, as a gateway hears them."""
    for event in events:
        if takes(health, event, now):
            health = apply(health, event, POLICY)
    return health


def seen(health: Health) -> object:
    """Return what requests can see of locks and circuits."""
    locks = {key: (lock.until, lock.at, lock.error_class) for key, lock in health.cooldowns.items()}
    return locks, dict(health.breakers)


MOMENTS = st.sampled_from([0.0, 900.0, 990.0, 995.0, 1000.0])
ENDS = st.sampled_from([995.0, 1001.0, 1010.0, 1060.0, 2800.0])
LOCKS = st.builds(
    Locked,
    at=MOMENTS,
    provider=st.just("alpha"),
    account=st.sampled_from(["A", "*"]),
    model=st.sampled_from(["m1", "*"]),
    until=ENDS,
    soft=st.booleans(),
    error_class=st.sampled_from([ErrorClass.RATE, ErrorClass.AUTH]),
)
OPENINGS = st.builds(
    CircuitOpened,
    at=MOMENTS,
    provider=st.just("alpha"),
    model=st.sampled_from(["m1", "m2"]),
    until=ENDS,
    open_s=st.sampled_from([30.0, 60.0]),
)
STORY = st.lists(LOCKS | OPENINGS, max_size=12)


@given(STORY, st.randoms(use_true_random=False))
def test_the_order_of_merging_is_no_matter(story: list[Event], chance: Random) -> None:
    other = story.copy()
    chance.shuffle(other)
    assert seen(heard(*story)) == seen(heard(*other))


@given(STORY)
def test_what_is_heard_twice_changes_nothing(story: list[Event]) -> None:
    once = heard(*story)
    assert heard(*story, health=once) is once


@given(STORY, STORY)
def test_two_who_exchange_their_states_agree(one: list[Event], other: list[Event]) -> None:
    here, there = heard(*one), heard(*other)
    merged = heard(*shared_of(there, NOW), health=here)
    assert seen(merged) == seen(heard(*shared_of(here, NOW), health=there))


@given(STORY)
def test_the_later_end_wins(story: list[Event]) -> None:
    health = heard(*story)
    for event in story:
        if isinstance(event, Locked) and event.until > NOW:
            key = LockKey(event.provider, event.account, event.model, event.soft)
            assert health.cooldowns[key].until >= event.until
        if isinstance(event, CircuitOpened) and event.until > NOW:
            assert health.breakers[event.provider, event.model].until >= event.until  # type: ignore[index]


@given(STORY)
def test_what_is_shared_comes_back_as_it_was(story: list[Event]) -> None:
    health = heard(*story)
    records = [to_record(event) for event in shared_of(health, NOW)]
    assert seen(heard(*map(from_record, records))) == seen(health)


def test_locks_and_open_circuits_are_shared_and_what_has_run_out_is_not() -> None:
    health = fold([locked(NOW - 1), locked(NOW + 9, model="m2"), opened()], POLICY)
    assert shared_of(health, NOW) == [locked(NOW + 9, model="m2"), opened()]


def test_a_circuit_whose_wait_is_over_is_not_shared() -> None:
    assert shared_of(fold([opened(NOW)], POLICY), NOW) == []


def test_a_failure_is_shared_as_the_lock_it_set() -> None:
    health = apply(EMPTY, failed(), POLICY)
    assert shared_of(health, NOW) == [locked(NOW + 59, at=NOW - 1)]


def test_a_level_of_our_own_outlives_a_lock_of_another() -> None:
    health = heard(locked(NOW + 600), health=apply(EMPTY, failed(level=3), POLICY))
    assert health.cooldowns[LockKey("alpha", "A", "m1", soft=False)].level == 3


@pytest.mark.parametrize(
    "event",
    [
        failed(),
        Succeeded(NOW, "alpha", "m1", "A", NOW - 1),
        CircuitHalfOpened(NOW, "alpha", "m1"),
        ProbeLeased(NOW, "alpha", "m1", NOW + 10),
    ],
)
def test_evidence_of_others_is_not_taken(event: Event) -> None:
    assert not takes(apply(EMPTY, opened(NOW - 1), POLICY), event, NOW)


@pytest.mark.parametrize("until", [NOW, NOW + FURTHEST_S + 1])
def test_a_lock_that_has_run_out_or_cannot_be_is_not_taken(until: float) -> None:
    assert (takes(EMPTY, locked(until), NOW), takes(EMPTY, opened(until), NOW)) == (False, False)


@pytest.mark.parametrize(("at", "taken"), [(NOW - 9, True), (NOW + AHEAD_S, True), (NOW + AHEAD_S + 1, False)])
def test_a_clearing_far_in_the_future_is_not_taken(at: float, *, taken: bool) -> None:
    assert takes(EMPTY, Cleared(at), NOW) is taken


def test_a_closing_counts_where_our_own_wait_is_over() -> None:
    health = heard(CircuitClosed(NOW, "alpha", "m1"), health=apply(EMPTY, opened(NOW - 1), POLICY))
    assert circuit_state(health, "alpha", "m1", NOW) is CircuitState.CLOSED


def test_a_closing_does_not_shorten_our_own_wait() -> None:
    health = apply(EMPTY, opened(NOW + 20), POLICY)
    assert heard(CircuitClosed(NOW, "alpha", "m1"), health=health) is health


@pytest.mark.parametrize("health", [EMPTY, fold([opened(NOW - 1), CircuitClosed(NOW, "alpha", "m1")], POLICY)])
def test_a_closing_of_a_closed_circuit_is_not_taken(health: Health) -> None:
    assert not takes(health, CircuitClosed(NOW, "alpha", "m1"), NOW)


def test_a_clearing_lifts_what_was_set_before_it_only() -> None:
    health = fold([locked(at=NOW - 5), locked(at=NOW - 1, model="m2"), opened(at=NOW - 1), Cleared(NOW - 3)], POLICY)
    assert cooldown_of(health, "alpha", "A", "m1", NOW) is None
    assert cooldown_of(health, "alpha", "A", "m2", NOW) is not None
    assert circuit_state(health, "alpha", "m1", NOW) is CircuitState.OPEN


def test_no_closing_follows_from_a_clearing_before_the_opening() -> None:
    health = apply(EMPTY, opened(at=NOW - 1), POLICY)
    assert decide(health, Cleared(NOW - 3), POLICY) == (Cleared(NOW - 3),)


@pytest.mark.parametrize(
    ("event", "clearing", "lifted"),
    [
        (locked(), Cleared(NOW), True),
        (locked(), Cleared(NOW, "alpha", "A", "m1"), True),
        (locked(), Cleared(NOW - 9), False),
        (locked(), Cleared(NOW, "alpha", "B"), False),
        (opened(), Cleared(NOW, "alpha"), True),
        (opened(), Cleared(NOW, "alpha", "A"), False),
        (CircuitClosed(NOW - 1, "alpha", "m1"), Cleared(NOW), False),
    ],
)
def test_a_clearing_that_came_first_is_remembered(event: Event, clearing: Cleared, *, lifted: bool) -> None:
    assert is_lifted(event, [clearing]) is lifted


def test_a_clearing_is_late_enough_for_a_clock_that_is_ahead() -> None:
    health = fold([locked(at=NOW + 2), opened(at=NOW + 3), Cleared(0.0)], POLICY)
    assert clearing_moment(health, NOW) == NOW + 3
    assert clearing_moment(EMPTY, NOW) == NOW


def test_a_lock_of_another_is_not_journalled() -> None:
    assert not is_journalled(EMPTY, locked())
