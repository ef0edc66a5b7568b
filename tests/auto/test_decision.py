"""The one path of an auto plan: budget, exclusion, score, last known good, exploration, order."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.auto.pools import A, B, C, entry
from troyproxy.auto.decision import Decision, Entry, Rules, decide
from troyproxy.auto.exclusion import Place
from troyproxy.auto.factors import Demand, Standing
from troyproxy.auto.incident import in_incident, incident
from troyproxy.auto.variants import Known
from troyproxy.auto.weights import DEFAULT, PACKS
from troyproxy.resilience.breaker import CircuitState

POOL = (entry("a", A, usd=0.03), entry("b", B, usd=0.02), entry("c", C, usd=0.01))
BAD = Standing(quota=0.0, circuit=CircuitState.OPEN, input_usd=90.0, samples=20, p95_ms=9e4, sigma_ms=9e4, fitness=0.0)
CLOSED, OPEN, HALF = CircuitState.CLOSED, CircuitState.OPEN, CircuitState.HALF_OPEN


def _decide(pool: tuple[Entry, ...] = POOL, rules: Rules | None = None, seed: int = 0) -> Decision:
    return decide(pool, Demand(), rules or Rules(), Random(seed))


@pytest.mark.parametrize(("pack", "first"), [("ship-fast", "a"), ("cost-saver", "b"), ("quality-first", "a")])
def test_the_best_score_of_the_pack_leads(pack: str, first: str) -> None:
    assert _decide(rules=Rules(weights=PACKS[pack])).order[0] == first


def test_an_empty_pool_has_no_order_and_no_price() -> None:
    decision = _decide(())
    assert (decision.order, decision.cheapest_usd) == ((), None)


def test_equal_scores_go_by_cost_then_latency_then_place() -> None:
    pool = (entry("first"), entry("second"))
    assert _decide(pool).order == ("first", "second")


def test_the_decision_tells_every_score() -> None:
    decision = _decide()
    assert [one.identity for one in decision.scored] == ["a", "b", "c"]
    assert decision.scored[0].factors["health"] == 1.0
    assert decision.weights == DEFAULT


def test_a_budget_leaves_out_what_costs_more() -> None:
    decision = _decide(rules=Rules(budget_usd=0.02))
    assert set(decision.order) == {"b", "c"}
    assert decision.over_budget == ("a",)


def test_a_price_that_is_unknown_fits_no_budget() -> None:
    decision = _decide((*POOL, entry("unpriced")), Rules(budget_usd=1.0))
    assert decision.over_budget == ("unpriced",)


def test_nothing_within_a_loose_budget_takes_the_cheapest() -> None:
    assert _decide(rules=Rules(budget_usd=0.001)).order == ("c",)


def test_nothing_within_a_strict_budget_is_nobody_and_names_the_cheapest() -> None:
    decision = _decide(rules=Rules(budget_usd=0.001, strict=True))
    assert (decision.order, decision.cheapest_usd) == ((), 0.01)


def test_nothing_priced_within_a_loose_budget_tries_the_unpriced() -> None:
    assert _decide((entry("x"),), Rules(budget_usd=0.1)).order == ("x",)


def test_the_last_known_good_leads_when_it_is_near_the_best() -> None:
    decision = _decide(rules=Rules(last="b"))
    assert (decision.order[0], decision.known) == ("b", True)


def test_the_last_known_good_does_not_lead_when_it_is_far_behind() -> None:
    decision = _decide(rules=Rules(weights=PACKS["quality-first"], last="c"))
    assert (decision.order[0], decision.known) == ("a", False)


def test_the_last_known_good_leads_without_a_margin_where_the_variant_says_so() -> None:
    rules = Rules(weights=PACKS["quality-first"], last="c", known=Known.FIRST)
    assert _decide(rules=rules).order[0] == "c"


def test_a_last_known_good_that_is_not_in_the_pool_changes_nothing() -> None:
    assert _decide(rules=Rules(last="gone")).order == _decide().order


def test_exploration_lies_within_three_sigma_of_its_rate_and_never_picks_the_best() -> None:
    count, rate = 10_000, 0.05
    decisions = [_decide(rules=Rules(exploration=rate), seed=seed) for seed in range(count)]
    explored = [decision for decision in decisions if decision.explored]
    assert abs(len(explored) - count * rate) <= 3 * math.sqrt(count * rate * (1 - rate))
    assert {decision.order[0] for decision in explored} == {"b", "c"}


@pytest.mark.parametrize(
    "rules", [Rules(exploration=1.0, incident=True), Rules(exploration=1.0, pinned=True), Rules(exploration=0.0)]
)
def test_nothing_is_explored_in_an_incident_in_a_pinned_session_or_at_rate_zero(rules: Rules) -> None:
    assert not _decide(rules=rules).explored


def test_a_sole_candidate_is_not_explored_around() -> None:
    assert not _decide(POOL[:1], Rules(exploration=1.0)).explored


def test_an_explored_order_is_not_called_known() -> None:
    decision = _decide(rules=Rules(exploration=1.0, last="b"))
    assert (decision.explored, decision.known) == (True, False)


def test_a_score_below_a_fifth_excludes_from_now_on() -> None:
    decision = _decide((POOL[0], entry("bad", BAD)))
    assert (decision.order, decision.to_exclude, decision.out) == (("a",), ("bad",), ("bad",))


def test_a_sole_candidate_is_never_excluded_for_its_score() -> None:
    assert _decide((entry("bad", BAD),)).order == ("bad",)


def test_who_is_out_is_not_in_the_order() -> None:
    decision = _decide((replace(POOL[0], place=Place.OUT), *POOL[1:]))
    assert "a" not in decision.order
    assert decision.out == ("a",)


def test_a_candidate_on_probation_leads_as_the_probe_and_others_such_go_last() -> None:
    pool = (POOL[0], replace(POOL[1], place=Place.PROBE), replace(POOL[2], place=Place.PROBE))
    decision = _decide(pool, Rules(exploration=1.0, last="a"))
    assert (decision.order, decision.probe) == (("b", "a", "c"), "b")
    assert not decision.explored


@pytest.mark.parametrize(
    ("last", "place", "order", "probe"),
    [
        ("a", Place.IN, ("a", "b", "c"), None),
        ("a", Place.OUT, ("c", "b"), "c"),
        (None, Place.IN, ("c", "a", "b"), "c"),
    ],
)
def test_a_session_is_no_probe_while_it_can_stay_where_it_is(
    last: str | None, place: Place, order: tuple[str, ...], probe: str | None
) -> None:
    pool = (replace(POOL[0], place=place), POOL[1], replace(POOL[2], place=Place.PROBE))
    decision = _decide(pool, Rules(last=last, pinned=True))
    assert (decision.order, decision.probe) == (order, probe)


def test_who_leads_by_exploration_or_as_a_probe_is_an_experiment() -> None:
    probing = (POOL[0], replace(POOL[1], place=Place.PROBE))
    asked = (_decide(), _decide(rules=Rules(exploration=1.0)), _decide(probing))
    assert [decision.experiment for decision in asked] == [False, True, True]


def test_all_excluded_come_back_the_earliest_end_first() -> None:
    pool = tuple(replace(one, place=Place.OUT, back_at=at) for one, at in zip(POOL, (30.0, 10.0, 20.0), strict=True))
    decision = _decide(pool)
    assert (decision.order, decision.readmitted) == (("b", "c", "a"), True)


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        ([("p1", OPEN), ("p2", OPEN), ("p3", OPEN), ("p4", CLOSED), ("p5", CLOSED)], True),
        ([("p1", OPEN), ("p2", OPEN), ("p3", CLOSED), ("p4", CLOSED)], False),
        ([("p1", OPEN), ("p1", CLOSED), ("p2", OPEN)], False),
        ([("p1", HALF), ("p2", OPEN)], False),
        ([], False),
    ],
)
def test_an_incident_is_more_than_half_of_the_providers_open(
    pool: list[tuple[str, CircuitState]], expected: bool
) -> None:
    assert incident(pool) is expected


def test_in_an_incident_steadiness_counts_thrice_and_health_half_more() -> None:
    weights = in_incident(DEFAULT)
    assert sum(weights.values()) == pytest.approx(1.0)
    assert weights["stability"] / weights["quota"] == pytest.approx(3 * 0.05 / 0.17)
    assert weights["health"] / weights["quota"] == pytest.approx(1.5 * 0.22 / 0.17)
    assert _decide(rules=Rules(incident=True)).weights == weights


@given(st.integers(0, 2**64 - 1), st.floats(0, 1), st.lists(st.sampled_from(Place), min_size=3, max_size=3))
def test_an_order_holds_nobody_twice_and_is_never_empty_without_a_strict_budget(
    seed: int, rate: float, places: list[Place]
) -> None:
    pool = tuple(replace(one, place=place) for one, place in zip(POOL, places, strict=True))
    order = _decide(pool, Rules(exploration=rate, last="b"), seed).order
    assert order
    assert len(set(order)) == len(order)
    assert set(order) <= {"a", "b", "c"}
