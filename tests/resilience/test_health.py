"""The one `apply`, its bounds, and the questions asked of the state."""

from __future__ import annotations

import pytest

from troyproxy.resilience.breaker import Admission, CircuitState
from troyproxy.resilience.classes import ErrorClass, Scope
from troyproxy.resilience.cooldowns import ANY
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
from troyproxy.resilience.health import (
    EMPTY,
    FORGET_S,
    CircuitStatus,
    CooldownStatus,
    Health,
    HealthPolicy,
    admission,
    apply,
    breaker_of,
    circuit_state,
    circuit_until,
    circuits,
    cooldown_of,
    cooldowns,
    eligible_at,
    fold,
    journal_horizon_s,
    prune,
    transition_of,
)

POLICY = HealthPolicy()
OPENED = CircuitOpened(100, "alpha", "m1", 130, 30)
LEASED = ProbeLeased(130, "alpha", "m1", 140)


def failed(
    at: float = 100, *, model: str = "m1", cooldown_s: float | None = 10, soft: bool = False, counts: bool = True
) -> Failed:
    return Failed(
        at,
        "alpha",
        model,
        "A",
        ErrorClass.TRANSIENT,
        None,
        cooldown_s,
        soft,
        Scope.PAIR,
        at - 1,
        level=1,
        counts=counts,
    )


def after(*events: Event, health: Health = EMPTY) -> Health:
    return fold(events, POLICY, health)


def test_a_failure_cools_its_pair() -> None:
    found = cooldown_of(after(failed()), "alpha", "A", "m1", 105)
    assert found is not None
    assert found.until == 110


def test_failures_alone_never_open_a_circuit() -> None:
    health = after(*[failed(100 + n) for n in range(9)])
    assert circuit_state(health, "alpha", "m1", 110) is CircuitState.CLOSED


def test_a_circuit_goes_through_its_states() -> None:
    health = after(OPENED)
    seen = [circuit_state(health, "alpha", "m1", now) for now in (100, 130)]
    health = after(CircuitHalfOpened(130, "alpha", "m1"), LEASED, health=health)
    seen.append(circuit_state(health, "alpha", "m1", 131))
    health = after(CircuitClosed(132, "alpha", "m1"), health=health)
    seen.append(circuit_state(health, "alpha", "m1", 132))
    assert seen == [CircuitState.OPEN, CircuitState.HALF_OPEN, CircuitState.HALF_OPEN, CircuitState.CLOSED]


def test_a_lease_denies_and_its_return_admits_again() -> None:
    held = after(OPENED, LEASED)
    free = after(ProbeReturned(133, "alpha", "m1", 130), health=held)
    found = [admission(health, "alpha", "m1", 133) for health in (held, free)]
    assert found == [Admission.DENY, Admission.PROBE]


def test_an_unknown_target_is_admitted() -> None:
    assert admission(EMPTY, "alpha", "m1", 0) is Admission.ADMIT


@pytest.mark.parametrize(
    "event",
    [
        LEASED,
        ProbeReturned(133, "alpha", "m1", 130),
        CircuitClosed(100, "alpha", "m1"),
        CircuitHalfOpened(100, "alpha", "m1"),
        Cleared(100),
        failed(cooldown_s=None, counts=False),
    ],
)
def test_an_event_that_does_not_fit_gives_the_same_object_back(event: Event) -> None:
    assert apply(EMPTY, event, POLICY) is EMPTY


def test_a_success_is_counted_and_clears_what_expired() -> None:
    health = after(failed(), Succeeded(111, "alpha", "m1", "A", 110.5))
    assert (dict(health.cooldowns), health.breakers["alpha", "m1"].window[-1].ok) == ({}, 1)  # type: ignore[index]


@pytest.mark.parametrize(
    ("event", "cooled", "open_circuits"),
    [
        (Cleared(105), 0, 0),
        (Cleared(105, provider="alpha"), 0, 0),
        (Cleared(105, provider="alpha", model="m1"), 0, 0),
        (Cleared(105, provider="beta"), 1, 1),
        (Cleared(105, account="A"), 0, 1),
        (Cleared(105, account="B"), 1, 1),
    ],
)
def test_clearing_lifts_locks_and_without_an_account_circuits(event: Cleared, cooled: int, open_circuits: int) -> None:
    health = after(failed(), OPENED, event)
    assert (len(cooldowns(health, 105)), len(circuits(health, 105))) == (cooled, open_circuits)


def test_a_clearing_forgets_what_was_counted_before_it_and_nothing_that_was_counted_after_it() -> None:
    health = after(failed(100), failed(103), Cleared(101.5, provider="alpha"))
    assert [bucket.failed for bucket in breaker_of(health, "alpha", "m1").window] == [1]


def test_a_clearing_that_is_heard_again_changes_nothing() -> None:
    cleared = Cleared(101.5, provider="alpha")
    health = after(failed(100), failed(101), cleared, failed(102), failed(103))
    assert apply(health, cleared, POLICY) is health


def test_cooldowns_are_listed_while_they_last() -> None:
    health = after(
        failed(),
        Failed(100, "alpha", "m1", "A", ErrorClass.AUTH, None, 120, soft=False, scope=Scope.ACCOUNT, started_at=99),
    )
    expected = CooldownStatus("alpha", "A", ANY, ErrorClass.AUTH, 220, soft=False)
    assert cooldowns(health, 111) == [expected]


@pytest.mark.parametrize(
    ("now", "state", "until"),
    [(110, CircuitState.OPEN, 130), (135, CircuitState.HALF_OPEN, 140), (150, CircuitState.HALF_OPEN, None)],
)
def test_circuits_are_listed_with_their_state(now: float, state: CircuitState, until: float | None) -> None:
    assert circuits(after(OPENED, LEASED), now) == [CircuitStatus("alpha", "m1", state, until)]


def test_a_denied_circuit_says_until_when() -> None:
    assert circuit_until(after(OPENED), "alpha", "m1", 110) == 130


@pytest.mark.parametrize(
    ("events", "at"),
    [
        ((), 105),
        ((failed(),), 110),
        ((failed(soft=True),), 105),
        ((OPENED,), 130),
        ((OPENED, failed(cooldown_s=900)), 1000),
    ],
)
def test_a_target_is_eligible_when_hard_locks_and_the_circuit_are_over(events: tuple[Event, ...], at: float) -> None:
    assert eligible_at(after(*events), "alpha", "A", "m1", 105) == at


@pytest.mark.parametrize(
    ("events", "event", "expected"),
    [
        ((), OPENED, (CircuitState.CLOSED, CircuitState.OPEN)),
        ((OPENED,), CircuitHalfOpened(130, "alpha", "m1"), (CircuitState.OPEN, CircuitState.HALF_OPEN)),
        ((OPENED,), CircuitOpened(131, "alpha", "m1", 191, 60), (CircuitState.HALF_OPEN, CircuitState.OPEN)),
        ((OPENED,), CircuitClosed(131, "alpha", "m1"), (CircuitState.HALF_OPEN, CircuitState.CLOSED)),
        ((OPENED,), LEASED, None),
    ],
)
def test_circuit_events_are_transitions(
    events: tuple[Event, ...], event: Event, expected: tuple[CircuitState, CircuitState] | None
) -> None:
    assert transition_of(after(*events), event) == expected


@pytest.mark.parametrize(
    ("event", "now", "kept"),
    [
        (failed(cooldown_s=None), 120, True),
        (failed(cooldown_s=None), 161, False),
        (OPENED, 130 + FORGET_S, True),
        (OPENED, 131 + FORGET_S, False),
    ],
)
def test_pruning_forgets_circuits_without_effect(event: Event, now: float, *, kept: bool) -> None:
    health = after(event)
    assert (prune(health, now, POLICY) is health) is kept


def test_pruning_keeps_a_lease_in_force() -> None:
    health = after(OPENED, ProbeLeased(130 + FORGET_S, "alpha", "m1", 200 + FORGET_S))
    assert prune(health, 150 + FORGET_S, POLICY) is health


def test_pruning_a_closed_circuit_waits_for_stale_outcomes() -> None:
    health = after(OPENED, CircuitClosed(131, "alpha", "m1"))
    assert prune(health, 150, POLICY) is health


def test_pruning_drops_expired_cooldowns() -> None:
    assert prune(after(failed(counts=False)), 111 + FORGET_S, POLICY) == EMPTY


def test_both_tables_are_bounded() -> None:
    policy = HealthPolicy(max_entries=16)
    health = fold([failed(float(n), model=f"m{n}") for n in range(200)], policy)
    assert (len(health.cooldowns) <= 16, len(health.breakers) <= 16) == (True, True)


def test_at_the_bound_what_lasts_longest_stays() -> None:
    policy = HealthPolicy(max_entries=16)
    health = fold([failed(cooldown_s=900), OPENED, *(failed(float(n), model=f"m{n}") for n in range(101, 200))], policy)
    kept = cooldown_of(health, "alpha", "A", "m1", 500), circuit_state(health, "alpha", "m1", 105)
    assert (kept[0] is not None, kept[1]) == (True, CircuitState.OPEN)


@pytest.mark.parametrize(("cap_s", "horizon_s"), [(60, 1800 + FORGET_S), (7200, 7200 + FORGET_S)])
def test_the_journal_is_kept_for_the_longest_effect(cap_s: float, horizon_s: float) -> None:
    assert journal_horizon_s(POLICY, cap_s) == horizon_s


def test_a_level_is_known() -> None:
    health = after(failed())
    assert [health.has_level("alpha", "A", model) for model in ("m1", "m2")] == [True, False]


def test_an_empty_state_has_no_levels() -> None:
    assert not EMPTY.has_level("alpha", "A", "m1")
