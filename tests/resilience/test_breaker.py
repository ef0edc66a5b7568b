"""The circuit breaker as a machine: its table, its window, its one probe."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.resilience.breaker import (
    BUCKETS,
    FRESH,
    TRANSITIONS,
    Admission,
    Breaker,
    BreakerPolicy,
    CircuitState,
    Outcome,
    Signal,
    admission,
    after_outcome,
    closed,
    counted,
    denied_until,
    diagram,
    half_opened,
    leased,
    next_open_s,
    opened,
    returned,
    signal_of,
    state_at,
    step,
    trips,
)

POLICY = BreakerPolicy()
OPEN = opened(FRESH, at=100, until=130, open_s=30)


def window(*outcomes: tuple[float, Outcome]) -> Breaker:
    breaker = FRESH
    for at, outcome in outcomes:
        breaker = counted(breaker, outcome, at, POLICY)
    return breaker


def failures(*times: float) -> Breaker:
    return window(*((at, Outcome.FAILURE) for at in times))


@pytest.mark.parametrize("state", list(CircuitState))
def test_each_state_can_be_reached_and_left(state: CircuitState) -> None:
    reached = {new for (old, _), new in TRANSITIONS.items() if old is not new}
    left = {old for (old, _), new in TRANSITIONS.items() if old is not new}
    assert state in reached & left


def test_the_diagram_shows_every_transition() -> None:
    drawn = diagram()
    assert drawn.startswith("stateDiagram-v2\n    [*] --> closed\n")
    assert all(f"    {old} --> {new}: {signal}\n" in drawn for (old, signal), new in TRANSITIONS.items())


def test_what_the_table_does_not_list_changes_nothing() -> None:
    assert step(FRESH, Signal.PROBE_FAILURE, 0) is CircuitState.CLOSED


@pytest.mark.parametrize(("times", "expected"), [((0, 30), False), ((0, 30, 59), True), ((0, 30, 60), False)])
def test_three_failures_within_a_minute_trip(times: tuple[float, ...], *, expected: bool) -> None:
    assert trips(failures(*times), POLICY) is expected


@pytest.mark.parametrize(("successes", "expected"), [(3, True), (4, False), (4000, False)])
def test_failures_must_be_half_of_all_outcomes(successes: int, *, expected: bool) -> None:
    breaker = window(*[(1.0, Outcome.SUCCESS)] * successes, *[(2.0, Outcome.FAILURE)] * 3)
    assert trips(breaker, POLICY) is expected


@given(st.lists(st.floats(0, 1e6), max_size=200))
def test_the_window_stays_small_whatever_the_times(times: list[float]) -> None:
    assert len(failures(*sorted(times)).window) <= BUCKETS + 1


@given(st.lists(st.tuples(st.integers(0, 300), st.booleans()), max_size=60))
def test_the_window_counts_what_a_list_would(outcomes: list[tuple[int, bool]]) -> None:
    ordered = sorted(outcomes)
    breaker = window(*((float(at), Outcome.FAILURE if bad else Outcome.SUCCESS) for at, bad in ordered))
    now = ordered[-1][0] if ordered else 0
    recent = [bad for at, bad in ordered if at > now - 60]
    assert (sum(b.ok for b in breaker.window), sum(b.failed for b in breaker.window)) == (
        recent.count(False),
        recent.count(True),
    )


def test_a_clock_set_back_adds_to_the_newest_slice() -> None:
    assert len(failures(50, 20).window) == 1


@pytest.mark.parametrize(
    ("now", "state", "admitted"),
    [
        (100, CircuitState.OPEN, Admission.DENY),
        (129.9, CircuitState.OPEN, Admission.DENY),
        (130, CircuitState.HALF_OPEN, Admission.PROBE),
        (9999, CircuitState.HALF_OPEN, Admission.PROBE),
    ],
)
def test_an_open_circuit_is_half_open_when_its_wait_is_over(
    now: float, state: CircuitState, admitted: Admission
) -> None:
    assert (state_at(OPEN, now), admission(OPEN, now)) == (state, admitted)


def test_a_closed_circuit_admits() -> None:
    assert admission(FRESH, 0) is Admission.ADMIT


def test_a_second_probe_is_denied_until_the_lease_lapses() -> None:
    breaker = leased(OPEN, at=131, until=140)
    assert [admission(breaker, now) for now in (131, 139.9, 140)] == [Admission.DENY, Admission.DENY, Admission.PROBE]


def test_a_leased_probe_cannot_be_leased_again() -> None:
    breaker = leased(OPEN, at=131, until=140)
    assert leased(breaker, at=132, until=150) is breaker


@pytest.mark.parametrize("breaker", [FRESH, OPEN])
def test_there_is_no_lease_unless_half_open(breaker: Breaker) -> None:
    assert leased(breaker, at=110, until=150) is breaker


@pytest.mark.parametrize(("now", "until"), [(110, 130), (130, None), (135, 140), (140, None)])
def test_a_denial_says_until_when(now: float, until: float | None) -> None:
    breaker = leased(OPEN, at=131, until=140) if now > 130 else OPEN
    assert denied_until(breaker, now) == until


def test_the_holder_gives_its_lease_back() -> None:
    assert returned(leased(OPEN, at=131, until=140), started_at=130.5).lease is None


def test_an_older_probe_cannot_free_the_lease_of_the_next() -> None:
    second = leased(leased(OPEN, at=131, until=140), at=141, until=150)
    assert returned(second, started_at=131) is second


def test_giving_back_what_nobody_holds_changes_nothing() -> None:
    assert returned(OPEN, started_at=131) is OPEN


@pytest.mark.parametrize(
    ("breaker", "outcome", "at", "started_at", "expected"),
    [
        (FRESH, Outcome.SUCCESS, 1, 0, Signal.SUCCESS),
        (FRESH, Outcome.FAILURE, 1, 0, Signal.FAILURE),
        (FRESH, Outcome.NEUTRAL, 1, 0, Signal.NEUTRAL),
        (failures(1, 2), Outcome.FAILURE, 3, 2, Signal.TRIP),
        (OPEN, Outcome.SUCCESS, 110, 105, Signal.STALE),
        (OPEN, Outcome.SUCCESS, 131, 100, Signal.STALE),
        (OPEN, Outcome.SUCCESS, 132, 131, Signal.PROBE_SUCCESS),
        (OPEN, Outcome.FAILURE, 132, 131, Signal.PROBE_FAILURE),
        (OPEN, Outcome.NEUTRAL, 132, 131, Signal.RETURN),
        (closed(OPEN, 132), Outcome.FAILURE, 140, 99, Signal.STALE),
        (closed(OPEN, 132), Outcome.FAILURE, 140, 131, Signal.FAILURE),
    ],
)
def test_an_outcome_has_its_meaning(
    breaker: Breaker, outcome: Outcome, at: float, started_at: float, expected: Signal
) -> None:
    assert signal_of(breaker, outcome, at=at, started_at=started_at, policy=POLICY) is expected


def test_a_stale_or_neutral_outcome_counts_nothing() -> None:
    found = [after_outcome(FRESH, Outcome.NEUTRAL, at=1, started_at=0, policy=POLICY)]
    found.append(after_outcome(OPEN, Outcome.FAILURE, at=131, started_at=50, policy=POLICY))
    assert found == [FRESH, OPEN]


def test_a_neutral_probe_frees_the_lease() -> None:
    breaker = leased(OPEN, at=131, until=140)
    assert after_outcome(breaker, Outcome.NEUTRAL, at=133, started_at=131, policy=POLICY).lease is None


def test_a_failure_is_counted() -> None:
    assert after_outcome(FRESH, Outcome.FAILURE, at=1, started_at=0, policy=POLICY).window[0].failed == 1


@pytest.mark.parametrize(("open_s", "expected"), [(30, 60), (200, 300), (300, 300)])
def test_a_failed_probe_doubles_the_wait_up_to_five_minutes(open_s: float, expected: float) -> None:
    assert next_open_s(replace(OPEN, open_s=open_s), 131, POLICY) == expected


def test_a_first_opening_waits_half_a_minute() -> None:
    assert next_open_s(FRESH, 0, POLICY) == 30


def test_of_two_openings_the_later_end_stays() -> None:
    assert opened(OPEN, at=101, until=110, open_s=30).until == 130


def test_an_opening_reported_late_does_not_move_the_last_one_back() -> None:
    assert opened(OPEN, at=90, until=120, open_s=30).opened_at == 100


def test_half_opening_needs_an_open_circuit_whose_wait_is_over() -> None:
    assert [half_opened(FRESH, 1), half_opened(OPEN, 120)] == [FRESH, OPEN]


def test_a_half_opened_circuit_stays_so_if_the_clock_is_set_back() -> None:
    assert state_at(half_opened(OPEN, 130), 120) is CircuitState.HALF_OPEN


def test_closing_empties_the_window_and_remembers_the_opening() -> None:
    assert closed(OPEN, 132) == Breaker(opened_at=100)


@pytest.mark.parametrize("breaker", [FRESH, OPEN])
def test_a_closing_from_before_the_opening_changes_nothing(breaker: Breaker) -> None:
    assert closed(breaker, 99) is breaker
