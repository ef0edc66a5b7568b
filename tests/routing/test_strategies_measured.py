"""The strategies that measure: p2c, least-used, cost-optimized, context-optimized, lkgp, context-relay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.routing.rounds import context, group, names, units, windowed
from troyproxy.routing.readings import Reading
from troyproxy.routing.strategies import STRATEGIES
from troyproxy.routing.strategies.measured import promise

p2c, least_used = STRATEGIES["p2c"], STRATEGIES["least-used"]
cost_optimized, context_optimized = STRATEGIES["cost-optimized"], STRATEGIES["context-optimized"]


@pytest.mark.parametrize("seed", range(20))
def test_p2c_prefers_the_less_busy_of_two(seed: int) -> None:
    readings = {"a": Reading(inflight=3, success_rate=1.0), "b": Reading(inflight=2, success_rate=0.0)}
    assert names(p2c(units("ab"), context(seed, readings=readings))) == "ba"


@pytest.mark.parametrize("seed", range(20))
def test_p2c_prefers_the_better_of_two_that_are_as_busy(seed: int) -> None:
    readings = {"a": Reading(success_rate=0.5, p50_ms=900.0), "b": Reading(success_rate=0.5, p50_ms=90.0)}
    assert names(p2c(units("ab"), context(seed, readings=readings)))[0] == "b"


def test_p2c_never_leads_with_the_busiest_of_three() -> None:
    readings = {"a": Reading(inflight=9)}
    assert "a" not in {names(p2c(units("abc"), context(seed, readings=readings)))[0] for seed in range(60)}


def test_p2c_ties_go_to_the_one_drawn_first_so_every_member_leads_at_times() -> None:
    assert {names(p2c(units("abc"), context(seed)))[0] for seed in range(60)} == set("abc")


def test_p2c_keeps_the_rest_in_saved_order() -> None:
    order = names(p2c(units("abcd"), context()))
    assert list(order[2:]) == sorted(order[2:])


def test_a_sole_member_needs_no_choice() -> None:
    assert names(p2c(units("a"), context())) == "a"


def test_the_promise_of_an_unknown_member_lies_in_the_middle() -> None:
    assert promise(Reading()) == pytest.approx(0.75)
    assert promise(Reading(half_open=True)) == pytest.approx(0.5)
    assert promise(Reading(success_rate=1.0, p50_ms=90.0)) == pytest.approx(1.5)
    assert promise(Reading(success_rate=1.0, p50_ms=-5.0)) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("readings", "order"),
    [
        ({"a": Reading(inflight=1), "b": Reading(recent=9)}, "cba"),
        ({"a": Reading(recent=2), "b": Reading(recent=1), "c": Reading(recent=3)}, "bac"),
        ({"a": Reading(last_used_at=2.0), "b": Reading(last_used_at=1.0), "c": Reading(last_used_at=3.0)}, "bac"),
        ({}, "abc"),
    ],
)
def test_least_used_goes_by_load_then_the_last_hour_then_idleness(readings: dict[str, Reading], order: str) -> None:
    assert names(least_used(units("abc"), context(readings=readings))) == order


def test_the_cheapest_leads_free_first_and_unknown_prices_last() -> None:
    readings = {"b": Reading(cost_usd=0.2), "c": Reading(cost_usd=0.0), "d": Reading(cost_usd=0.1)}
    assert names(cost_optimized(units("abcd"), context(readings=readings))) == "cdba"


def test_the_smallest_window_that_fits_leads() -> None:
    members = windowed({"a": 4000, "b": 128_000, "c": None, "d": 32_000, "e": 8000})
    assert names(context_optimized(members, context(tokens=10_000))) == "dbcea"


def test_a_window_that_is_exactly_enough_fits() -> None:
    assert names(context_optimized(windowed({"a": 9, "b": 10}), context(tokens=10))) == "ba"


@pytest.mark.parametrize("name", ["lkgp", "context-relay"])
def test_the_remembered_target_leads_and_the_rest_keep_the_saved_order(name: str) -> None:
    assert names(STRATEGIES[name](units("abc"), context(last="c"))) == "cab"


@pytest.mark.parametrize("name", ["lkgp", "context-relay"])
def test_a_remembered_target_that_is_not_eligible_changes_nothing(name: str) -> None:
    assert names(STRATEGIES[name](units("abc"), context(last="gone"))) == "abc"


def test_a_combo_carries_what_its_members_carry() -> None:
    members = [group("g", units("ab")), *units("c")]
    readings = {"a": Reading(inflight=1), "b": Reading(inflight=1), "c": Reading(inflight=1)}
    assert [unit.identity for unit in least_used(members, context(readings=readings)).members] == ["c", "combo/g"]


def test_a_combo_is_as_cheap_as_its_cheapest_member_and_as_wide_as_its_widest() -> None:
    readings = {"a": Reading(cost_usd=5.0), "b": Reading(cost_usd=0.1), "c": Reading(cost_usd=1.0)}
    members = [*units("c"), group("g", units("ab"))]
    assert cost_optimized(members, context(readings=readings)).members[0].identity == "combo/g"
    wide = [group("g", windowed({"a": 10, "b": 500})), *windowed({"c": 400})]
    assert context_optimized(wide, context(tokens=300)).members[0].identity == "c"


def test_an_empty_combo_is_unknown() -> None:
    members = [group("g", []), *units("c")]
    assert least_used(members, context()).members[0].identity == "combo/g"


@given(
    st.sampled_from(["p2c", "least-used", "cost-optimized", "context-optimized", "fill-first", "reset-aware"]),
    st.lists(st.builds(Reading, inflight=st.integers(0, 3), cost_usd=st.none() | st.floats(0, 1)), max_size=5),
    st.integers(0, 2**32),
)
def test_no_measurement_loses_or_doubles_a_member(name: str, readings: list[Reading], seed: int) -> None:
    members = "abcde"[: len(readings)]
    order = STRATEGIES[name](units(members), context(seed, readings=dict(zip(members, readings, strict=True))))
    assert sorted(names(order)) == list(members)
