"""Cooldowns: later wins, levels climb once per discovery, successes shorten nothing."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.resilience.classes import ErrorClass, Scope
from troyproxy.resilience.cooldowns import (
    ANY,
    LEVEL_MEMORY_S,
    MAX_LEVEL,
    Cooldown,
    LockKey,
    Locks,
    after_clearing,
    after_failure,
    after_success,
    backoff_s,
    key_of,
    level_of,
    longest,
    next_level,
    pruned,
)
from troyproxy.resilience.events import Cleared, Failed, Succeeded
from troyproxy.resilience.verdict import Verdict

PAIR = LockKey("alpha", "A", "m1", soft=False)


def rate(
    at: float, cooldown_s: float | None, *, level: int = 1, soft: bool = False, scope: Scope = Scope.PAIR
) -> Failed:
    return Failed(at, "alpha", "m1", "A", ErrorClass.RATE, None, cooldown_s, soft, scope, started_at=at, level=level)


def success(at: float) -> Succeeded:
    return Succeeded(at, "alpha", "m1", "A", started_at=at - 1)


@pytest.mark.parametrize(
    ("level", "wait_s"), [(0, 2), (1, 2), (2, 4), (3, 8), (8, 256), (9, 300), (15, 300), (99, 300)]
)
def test_a_rate_limit_backs_off_by_level(level: int, wait_s: float) -> None:
    waited = backoff_s(Verdict.of(ErrorClass.RATE, "429"), level, Random(1))
    assert waited == pytest.approx(wait_s, rel=0.1)


@given(level=st.integers(1, 30), seed=st.integers())
def test_back_off_never_exceeds_five_minutes(level: int, seed: int) -> None:
    waited = backoff_s(Verdict.of(ErrorClass.RATE, "429"), level, Random(seed))
    assert waited is not None
    assert 1.8 <= waited <= 300.0


def test_overload_is_jittered() -> None:
    waits = {backoff_s(Verdict.of(ErrorClass.OVERLOAD, "529"), 0, Random(seed)) for seed in range(5)}
    assert len(waits) == 5


@pytest.mark.parametrize(
    ("error_class", "wait_s"), [(ErrorClass.QUOTA, 1800.0), (ErrorClass.AUTH, 120.0), (ErrorClass.TRANSIENT, 2.0)]
)
def test_flat_classes_wait_exactly_their_time(error_class: ErrorClass, wait_s: float) -> None:
    assert backoff_s(Verdict.of(error_class, "x"), 7, Random(1)) == wait_s


def test_a_hint_wins_over_back_off() -> None:
    assert backoff_s(Verdict.of(ErrorClass.RATE, "429", hint_s=900.0), 1, Random(1)) == 900.0


@pytest.mark.parametrize(
    "error_class", [ErrorClass.REQUEST, ErrorClass.LEAK, ErrorClass.CANCELLED, ErrorClass.SATURATED]
)
def test_classes_that_do_not_cool_wait_for_nothing(error_class: ErrorClass) -> None:
    assert backoff_s(Verdict.of(error_class, "x"), 1, Random(1)) is None


@pytest.mark.parametrize(
    ("scope", "account", "model"), [(Scope.PAIR, "A", "m1"), (Scope.ACCOUNT, "A", ANY), (Scope.MODEL, ANY, "m1")]
)
def test_a_scope_has_its_key(scope: Scope, account: str, model: str) -> None:
    assert key_of(scope, "alpha", "A", "m1", soft=True) == ("alpha", account, model, True)


def test_a_failure_sets_a_lock() -> None:
    assert after_failure({}, rate(10, 5))[PAIR] == Cooldown(15, soft=False, level=1, error_class=ErrorClass.RATE, at=10)


@pytest.mark.parametrize("event", [rate(10, None), rate(10, 5, scope=Scope.NONE)])
def test_a_failure_that_does_not_cool_sets_none(event: Failed) -> None:
    locks: Locks = {}
    assert after_failure(locks, event) is locks


def test_the_same_failure_again_changes_nothing() -> None:
    locks = after_failure({}, rate(10, 5))
    assert after_failure(locks, rate(10, 5)) is locks


def test_the_later_end_wins() -> None:
    locks = after_failure(after_failure({}, rate(10, 100)), rate(11, 5, level=2))
    assert (locks[PAIR].until, locks[PAIR].level) == (110, 2)


def test_a_soft_lock_does_not_soften_a_hard_one() -> None:
    locks = after_failure(after_failure({}, rate(10, 20)), rate(11, 500, soft=True))
    found = longest(locks, "alpha", "A", "m1", 12)
    assert found is not None
    assert (found.soft, found.until) == (False, 30)


def test_when_the_hard_lock_ends_the_soft_one_holds() -> None:
    locks = after_failure(after_failure({}, rate(10, 20)), rate(11, 500, soft=True))
    found = longest(locks, "alpha", "A", "m1", 31)
    assert found is not None
    assert (found.soft, found.until) == (True, 511)


@pytest.mark.parametrize(
    ("scope", "account", "model", "held"),
    [
        (Scope.PAIR, "A", "m1", True),
        (Scope.PAIR, "A", "m2", False),
        (Scope.PAIR, "B", "m1", False),
        (Scope.ACCOUNT, "A", "m2", True),
        (Scope.ACCOUNT, "B", "m1", False),
        (Scope.MODEL, "B", "m1", True),
        (Scope.MODEL, "A", "m2", False),
    ],
)
def test_a_lock_holds_what_its_scope_says(scope: Scope, account: str, model: str, *, held: bool) -> None:
    locks = after_failure({}, rate(10, 5, scope=scope))
    assert (longest(locks, "alpha", account, model, 11) is not None) is held


def test_without_locks_nothing_is_held() -> None:
    assert longest({}, "alpha", "A", "m1", 0) is None


def test_a_level_climbs_with_each_new_discovery() -> None:
    locks = after_failure({}, rate(10, 2))
    assert next_level(locks, PAIR, at=13, started_at=12) == 2


def test_attempts_that_began_before_the_lock_are_the_same_discovery() -> None:
    locks = after_failure({}, rate(10, 2))
    assert next_level(locks, PAIR, at=11, started_at=9) == 1


def test_a_level_stops_at_its_ceiling() -> None:
    locks = after_failure({}, rate(10, 2, level=MAX_LEVEL))
    assert next_level(locks, PAIR, at=13, started_at=12) == MAX_LEVEL


@pytest.mark.parametrize(("later_s", "level"), [(LEVEL_MEMORY_S, 4), (LEVEL_MEMORY_S + 1, 0)])
def test_a_level_is_remembered_for_an_hour(later_s: float, level: int) -> None:
    locks = after_failure({}, rate(10, 2, level=4))
    assert level_of(locks, PAIR, 12 + later_s) == level


def test_a_success_clears_what_has_expired() -> None:
    assert after_success(after_failure({}, rate(10, 2)), success(12)) == {}


def test_a_success_resets_the_level_and_shortens_nothing() -> None:
    locks = after_success(after_failure({}, rate(10, 50, level=3)), success(12))
    assert (locks[PAIR].level, locks[PAIR].until) == (0, 60)


@pytest.mark.parametrize("locks", [{}, after_failure({}, rate(10, 50, level=0))])
def test_a_success_without_anything_to_clear_changes_nothing(locks: Locks) -> None:
    assert after_success(locks, success(12)) is locks


@pytest.mark.parametrize(
    ("event", "lifted"),
    [
        (Cleared(11), True),
        (Cleared(11, provider="alpha"), True),
        (Cleared(11, provider="beta"), False),
        (Cleared(11, provider="alpha", account="A"), True),
        (Cleared(11, account="B"), False),
        (Cleared(11, model="m1"), True),
        (Cleared(11, model="m2"), False),
    ],
)
def test_clearing_lifts_what_matches(event: Cleared, *, lifted: bool) -> None:
    locks = after_failure({}, rate(10, 50))
    assert (after_clearing(locks, event) is not locks) is lifted


@pytest.mark.parametrize(("level", "kept"), [(0, False), (2, True)])
def test_pruning_keeps_levels_that_are_remembered(level: int, *, kept: bool) -> None:
    locks = after_failure({}, rate(10, 2, level=level))
    assert (pruned(locks, 20) is locks) is kept


def test_pruning_keeps_locks_in_force() -> None:
    locks = after_failure({}, rate(10, 20, level=0))
    assert pruned(locks, 20) is locks
