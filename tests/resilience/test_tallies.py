"""What is held back, and that holding back changes nothing."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import example, given

from troyproxy.resilience import tallies
from troyproxy.resilience.breaker import BreakerPolicy
from troyproxy.resilience.classes import ErrorClass, Scope
from troyproxy.resilience.decide import decide
from troyproxy.resilience.events import CircuitOpened, Cleared, Event, Failed, Locked, ProbeLeased, Succeeded
from troyproxy.resilience.health import EMPTY, Health, HealthPolicy, apply
from troyproxy.resilience.tallies import Tallies

POLICY = HealthPolicy(breaker=BreakerPolicy(failures=2, window_s=6.0, open_s=3.0), max_entries=4)
PROVIDERS = ("alpha", "beta")


def _failed(at: float, provider: str, model: str, age: float, cooldown_s: float | None) -> Failed:
    rate = ErrorClass.RATE
    return Failed(at, provider, model, "A", rate, None, cooldown_s, False, Scope.PAIR, at - age, level=1, counts=True)


def _event(kind: str, at: float, provider: str, model: str, age: float) -> Event:
    made: dict[str, Event] = {
        "ok": Succeeded(at, provider, model, "A", at - age),
        "failed": _failed(at, provider, model, age, None),
        "limited": _failed(at, provider, model, age, 1.0),
        "locked": Locked(at, provider, "A", model, at + 2, soft=False, error_class=ErrorClass.RATE),
        "opened": CircuitOpened(at, provider, model, at + 1, 1),
        "leased": ProbeLeased(at, provider, model, at + 1),
        "cleared": Cleared(at, provider),
    }
    return made[kind]


def _live(health: Health, event: Event) -> Health:
    for each in decide(health, event, POLICY):
        health = apply(health, each, POLICY)
    return health


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["ok"] * 12 + ["failed", "locked", "limited", "opened", "leased", "cleared"]),
        st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.3, 1.0, 4.0, 7.0, -0.02, -3.0]),
        st.sampled_from(PROVIDERS),
        st.sampled_from(["m1", "m2", "m3"]),
        st.sampled_from([0.0, 0.04, 2.0]),
    ),
    max_size=60,
)


@given(EVENTS, st.booleans())
@example([("ok", 0.0, "alpha", "m1", 0.0), ("ok", 0.0, "alpha", "m1", 0.0), ("failed", 7.0, "alpha", "m1", 0.0)], False)
def test_successes_that_are_held_back_leave_the_state_that_each_of_them_would_have_left(
    events: list[tuple[str, float, str, str, float]],
    looks: bool,
) -> None:
    at, plain, held, sums = 1000.0, EMPTY, EMPTY, Tallies(POLICY)
    for kind, after, provider, model, age in events:
        at += after
        event = _event(kind, at, provider, model, age)
        plain = _live(plain, event)
        kept = isinstance(event, Succeeded) and sums.add(held, provider, model, at=at, started_at=event.started_at)
        if not kept:
            held = _live(sums.settled(held), event)
        elif looks:
            held = sums.settled(held)
            assert held == plain
    assert sums.settled(held) == plain


def test_an_ordinary_success_is_held_back_until_the_state_is_settled() -> None:
    sums = Tallies(POLICY)
    assert [sums.add(EMPTY, "alpha", "m1", at=10.0, started_at=9.0) for _ in range(3)] == [True] * 3
    assert [bucket.ok for breaker in sums.settled(EMPTY).breakers.values() for bucket in breaker.window] == [3]


def test_what_was_settled_is_counted_once() -> None:
    sums = Tallies(POLICY)
    sums.add(EMPTY, "alpha", "m1", at=10.0, started_at=9.0)
    once = sums.settled(EMPTY)
    assert sums.settled(once) is once


def test_a_success_of_the_next_slice_is_not_added_to_the_sum_of_this_one() -> None:
    sums = Tallies(POLICY)
    sums.add(EMPTY, "alpha", "m1", at=10.0, started_at=9.0)
    assert not sums.add(EMPTY, "alpha", "m1", at=10.2, started_at=9.0)


def test_a_success_of_a_circuit_that_is_not_closed_is_for_the_state_itself() -> None:
    opened = apply(EMPTY, CircuitOpened(5.0, "alpha", "m1", 8.0, 3.0), POLICY)
    assert not Tallies(POLICY).add(opened, "alpha", "m1", at=10.0, started_at=9.0)


def test_a_success_while_a_lock_of_its_provider_is_remembered_is_for_the_state_itself() -> None:
    locked = apply(EMPTY, Locked(5.0, "alpha", "A", "m1", 6.0, soft=False, error_class=ErrorClass.RATE), POLICY)
    took = [Tallies(POLICY).add(locked, provider, "m1", at=10.0, started_at=9.0) for provider in PROVIDERS]
    assert took == [False, True]


def test_the_sums_are_bounded() -> None:
    sums = Tallies(POLICY)
    took = [sums.add(EMPTY, "alpha", f"m{each}", at=10.0, started_at=9.0) for each in range(tallies.MOST + 1)]
    assert took == [True] * tallies.MOST + [False]
