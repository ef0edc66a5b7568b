"""The strategies that go by quotas: fill-first and reset-aware."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.routing.rounds import NOW, context, group, names, units
from troyproxy.routing.context import State
from troyproxy.routing.readings import Quota, Reading, full_until
from troyproxy.routing.strategies import STRATEGIES
from troyproxy.routing.strategies.quotas import reset_value

fill_first, reset_aware = STRATEGIES["fill-first"], STRATEGIES["reset-aware"]
SESSION_S, WEEK_S = 18_000.0, 604_800.0
left = st.floats(0.021, 1.0)


def session(remaining: float, reset_in_s: float = SESSION_S / 2) -> Quota:
    return Quota("session", remaining, NOW + reset_in_s, SESSION_S)


def weekly(remaining: float, reset_in_s: float = WEEK_S / 2) -> Quota:
    return Quota("weekly", remaining, NOW + reset_in_s, WEEK_S)


def holding(**quotas: Quota) -> dict[str, Reading]:
    return {name: Reading(quotas=(quota,)) for name, quota in quotas.items()}


@pytest.mark.parametrize(
    ("reading", "until"),
    [
        (Reading(), None),
        (Reading(quotas=(Quota("q", 0.03, NOW + 5),)), None),
        (Reading(quotas=(Quota("q", 0.02, NOW + 5),)), NOW + 5),
        (Reading(quotas=(Quota("q", 0.01, NOW + 5, own=True),)), None),
        (Reading(quotas=(Quota("q", 0.0, NOW + 5, own=True),)), NOW + 5),
        (Reading(quotas=(Quota("q", 0.0),)), math.inf),
        (Reading(quotas=(Quota("a", 0.0, NOW + 5), Quota("b", 0.0, NOW + 9))), NOW + 9),
        (Reading(barred_until=NOW + 7), NOW + 7),
    ],
)
def test_an_account_is_full_until_every_full_window_is_reset(reading: Reading, until: float | None) -> None:
    assert full_until(reading) == until


def test_fill_first_keeps_the_saved_order_while_nobody_is_full() -> None:
    assert names(fill_first(units("abc"), context(readings=holding(a=session(0.1))))) == "abc"


def test_a_full_account_goes_to_the_tail_by_earliest_reset() -> None:
    readings = holding(a=session(0.0, 900), b=session(0.0, 300), d=Quota("q", 0.0))
    assert names(fill_first(units("abcd"), context(readings=readings))) == "cbad"


def test_a_combo_is_full_only_when_all_its_members_are() -> None:
    members = [group("g", units("ab")), *units("c")]
    half, whole = holding(a=session(0.0)), holding(a=session(0.0), b=session(0.0))
    assert fill_first(members, context(readings=half)).members[0].identity == "combo/g"
    assert fill_first(members, context(readings=whole)).members[0].identity == "c"


def test_reset_aware_values_what_is_left_and_what_is_reset_soon() -> None:
    value = reset_value(Reading(quotas=(session(0.5), weekly(0.8, WEEK_S / 4))), NOW)
    by_hand = 0.35 * (0.4 * 0.5 + 0.6 * 0.5 * 0.5) + 0.65 * (0.4 * 0.8 + 0.6 * 0.8 * 0.75)
    assert value == pytest.approx(by_hand)


def test_a_sole_window_has_the_whole_weight() -> None:
    assert reset_value(Reading(quotas=(weekly(0.5),)), NOW) == pytest.approx(0.4 * 0.5 + 0.6 * 0.5 * 0.5)


def test_a_window_without_a_known_reset_is_not_urgent() -> None:
    assert reset_value(Reading(quotas=(Quota("q", 0.5),)), NOW) == pytest.approx(0.2)


def test_no_data_is_worth_a_half() -> None:
    assert reset_value(Reading(), NOW) == 0.5


def test_a_session_that_runs_short_loses_value_fast() -> None:
    full = 0.4 * 0.05 + 0.6 * 0.05 * 0.5
    assert reset_value(Reading(quotas=(session(0.05),)), NOW) == pytest.approx(full * 0.5)


@given(left, st.floats(1, SESSION_S - 1), st.floats(1, SESSION_S - 1))
def test_equal_remaining_values_the_sooner_reset_more(remaining: float, one_s: float, other_s: float) -> None:
    sooner, later = sorted((one_s, other_s))
    values = [reset_value(Reading(quotas=(session(remaining, s),)), NOW) for s in (sooner, later)]
    assert values[0] >= values[1]


@given(left, left, st.floats(0, WEEK_S))
def test_equal_reset_values_more_remaining_more(one: float, other: float, reset_in_s: float) -> None:
    less, more = sorted((one, other))
    values = [reset_value(Reading(quotas=(weekly(r, reset_in_s),)), NOW) for r in (more, less)]
    assert values[0] >= values[1]


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.integers(0, 2**32))
def test_used_up_is_never_first_while_another_is_not(remaining: list[float], seed: int) -> None:
    members = "abcdef"[: len(remaining)]
    readings = {name: Reading(quotas=(weekly(r),)) for name, r in zip(members, remaining, strict=True)}
    lead = names(reset_aware(units(members), context(seed, readings=readings)))[0]
    assert readings[lead].quotas[0].remaining > 0.02 or all(r <= 0.02 for r in remaining)


def test_an_account_whose_quota_error_has_not_passed_is_used_up() -> None:
    readings = {"a": Reading(barred_until=NOW + 60)}
    assert names(reset_aware(units("ab"), context(readings=readings))) == "ba"


def test_within_a_twentieth_of_the_best_the_choice_rotates() -> None:
    readings, leads = holding(a=weekly(0.80), b=weekly(0.79), c=weekly(0.3)), ""
    state: State | None = None
    for _ in range(4):
        order = reset_aware(units("abc"), context(readings=readings, state=state, circle=tuple("abc")))
        (effect,) = order.effects
        state = effect.state
        leads += names(order)[0]
    assert leads == "abab"


def test_when_all_are_used_up_the_earliest_reset_leads() -> None:
    readings = holding(a=weekly(0.0, 900), b=weekly(0.01, 300))
    assert names(reset_aware(units("ab"), context(readings=readings))) == "ba"
