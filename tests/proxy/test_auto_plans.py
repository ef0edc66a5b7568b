"""Exploration, exclusion, probes and incidents, through the planner that serves traffic."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from tests.fakes import FakeClock
from tests.proxy.auto_desk import FIVE, AutoDesk, priced, providers, skipped
from troyproxy.errors import AllUnavailable
from troyproxy.resilience.classes import ErrorClass

PLANS = 10_000
MINUTE = 60.0


@pytest.fixture
def desk(clock: FakeClock) -> AutoDesk:
    return AutoDesk(clock)


# --- exploration ---


@pytest.mark.parametrize(("name", "rate"), [("auto", 0.05), ("auto/smart", 0.10)])
def test_exploration_lies_within_three_sigma_of_its_rate(clock: FakeClock, name: str, rate: float) -> None:
    desk = AutoDesk(clock, *FIVE[:3], exploration=0.05)
    firsts = Counter(desk.order(name)[0] for _ in range(PLANS))
    explored = firsts["p1"] + firsts["p2"]
    sigma = math.sqrt(PLANS * rate * (1 - rate))
    assert abs(explored - PLANS * rate) <= 3 * sigma
    assert abs(firsts["p1"] - explored / 2) <= 3 * math.sqrt(explored / 4)


def test_an_explored_plan_says_so(clock: FakeClock) -> None:
    desk = AutoDesk(clock, exploration=1.0)
    call = desk.plan()
    (plan,) = desk.observer.of("auto_planned")[0]
    assert (desk.marks(call), plan.explored) == (["explored"], True)  # type: ignore[attr-defined]  # an AutoPlan


def test_the_rate_zero_explores_nothing(desk: AutoDesk) -> None:
    assert {desk.order()[0] for _ in range(1_000)} == {"p0"}


def test_the_rate_zero_leaves_the_variant_that_has_its_own_rate(desk: AutoDesk) -> None:
    assert {desk.order("auto/smart")[0] for _ in range(1_000)} != {"p0"}


def test_an_incident_explores_nothing(clock: FakeClock) -> None:
    desk = AutoDesk(clock, exploration=1.0)
    desk.open("p2", "p3", "p4")
    assert {tuple(desk.marks(desk.plan())) for _ in range(200)} == {("incident",)}


def test_a_session_that_has_its_target_is_not_explored_with(clock: FakeClock) -> None:
    desk = AutoDesk(clock, exploration=1.0)
    held = {"x-troy-session": "s1"}
    call = desk.plan(headers=held)
    desk.auto.served(call.remember, desk.target("p0"))
    assert {desk.order(headers=held)[0] for _ in range(200)} == {"p0"}
    assert {desk.order(headers={"x-troy-session": "s2"})[0] for _ in range(200)} == {"p1", "p2", "p3", "p4"}


def test_exploration_stays_within_the_budget(clock: FakeClock) -> None:
    desk = AutoDesk(clock, exploration=1.0)
    budget = {"x-troy-budget-usd": "0.0022"}
    assert {desk.order(headers=budget)[0] for _ in range(200)} == {"p1"}


# --- exclusion ---


def test_the_ladder_is_five_ten_twenty_thirty_thirty_minutes(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    for minutes in (5, 10, 20, 30, 30):
        desk.clock.move(minutes * MINUTE - 1.0)
        assert "p0" not in desk.order()
        desk.clock.move(1.0)
        call = desk.plan()
        assert (call.probe, providers(call)[0]) == ("p0/m#A", "p0")
        desk.attempts("p0", "-")
    assert [reason for _, _, reason in desk.observer.of("auto_excluded")] == ["failures", *["probe"] * 5]


def test_who_is_excluded_is_skipped_as_such(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    assert skipped(desk.plan()) == [("p0", "excluded")]


def test_one_probe_is_in_flight_at_a_time(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    desk.clock.move(5 * MINUTE)
    first, second = desk.plan(), desk.plan()
    assert (first.probe, second.probe, skipped(second)) == ("p0/m#A", None, [("p0", "excluded")])


def test_a_probe_holds_its_place_for_as_long_as_it_may_take(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    desk.clock.move(5 * MINUTE)
    desk.plan()
    desk.auto.probing(desk.target("p0", limit_s=75.0))
    desk.clock.move(74.0)
    assert desk.plan().probe is None
    desk.clock.move(1.0)
    assert desk.plan().probe == "p0/m#A"


def test_a_probe_that_never_begins_gives_its_place_back_after_five_seconds(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    desk.clock.move(5 * MINUTE)
    desk.plan()
    desk.clock.move(4.9)
    assert desk.plan().probe is None
    desk.clock.move(0.1)
    assert desk.plan().probe == "p0/m#A"


def test_a_good_probe_readmits_and_the_ladder_begins_anew(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    desk.clock.move(5 * MINUTE)
    desk.plan()
    desk.attempts("p0", "+")
    call = desk.plan()
    assert (providers(call)[0], call.probe) == ("p0", None)
    desk.attempts("p0", "-----")
    desk.clock.move(5 * MINUTE)
    assert desk.plan().probe == "p0/m#A"


def test_a_probe_is_good_when_it_begins_to_answer(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    desk.clock.move(5 * MINUTE)
    desk.plan()
    with desk.attempt("p0") as target:
        desk.auto.served((), target)
        assert (desk.order()[0], desk.plan().probe) == ("p0", None)


@pytest.mark.parametrize("word", ["request", "context", "cancelled", "saturated"])
def test_what_says_nothing_of_the_candidate_is_not_counted(desk: AutoDesk, word: str) -> None:
    desk.attempts("p0", "-" * 20, word)
    assert desk.order()[0] == "p0"


@pytest.mark.parametrize("word", ["request", "context", "cancelled", "saturated"])
def test_a_probe_that_says_nothing_is_made_again_at_once(desk: AutoDesk, word: str) -> None:
    desk.attempts("p0", "-----")
    desk.clock.move(5 * MINUTE)
    desk.plan()
    desk.attempts("p0", "-", word)
    assert desk.plan().probe == "p0/m#A"


def test_an_attempt_of_before_the_probe_does_not_give_its_place_back(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    with desk.attempt("p0", "cancelled"):
        desk.clock.move(5 * MINUTE)
        desk.plan()
    assert desk.plan().probe is None


@pytest.mark.parametrize("outcome", ["ok", "transient"])
def test_an_attempt_of_before_the_exclusion_changes_nothing(desk: AutoDesk, outcome: str) -> None:
    with desk.attempt("p0", outcome):
        desk.clock.move(1.0)
        desk.attempts("p0", "-----")
    assert "p0" not in desk.order()
    desk.clock.move(5 * MINUTE)
    assert desk.plan().probe == "p0/m#A"


def test_a_client_that_left_does_not_count(desk: AutoDesk) -> None:
    for _ in range(6):
        with desk.attempt("p0", whole=False):
            pass
    assert desk.order()[0] == "p0"


def test_all_excluded_come_back_the_earliest_end_first(desk: AutoDesk) -> None:
    for name in ("p3", "p1", "p4", "p0", "p2"):
        desk.attempts(name, "-----")
        desk.clock.move(1.0)
    call = desk.plan()
    assert (providers(call), desk.marks(call)) == (["p3", "p1", "p4", "p0", "p2"], ["readmitted"])


def test_who_comes_back_for_want_of_others_and_serves_is_in_again(desk: AutoDesk) -> None:
    for name in ("p3", "p1", "p4", "p0", "p2"):
        desk.attempts(name, "-----")
    desk.plan()
    desk.attempts("p1", "+")
    assert desk.order() == ["p1"]


def test_of_all_excluded_those_that_are_open_do_not_come_back(desk: AutoDesk) -> None:
    desk.open("p0", "p1")
    for name in ("p2", "p3", "p4"):
        desk.attempts(name, "-----")
    assert desk.order() == ["p2", "p3", "p4"]


def test_all_open_is_503_with_the_earliest_reset(desk: AutoDesk) -> None:
    desk.open("p0")
    desk.clock.move(10.0)
    desk.open("p1", "p2", "p3", "p4")
    error = desk.refused(desk.call())
    assert isinstance(error, AllUnavailable)
    assert error.headers["retry-after"] == "20"


def test_a_score_below_a_fifth_is_excluded_once_however_many_combos_see_it(clock: FakeClock) -> None:
    desk = AutoDesk(clock, priced("p0", 0.0), priced("p1", 100.0))
    mode = {"x-troy-mode": "cost-saver"}
    for name in ("p0", "p1"):
        desk.attempts(name, "+" * 10)  # both as slow and as unsteady as the slowest
    desk.quota("p1", 0)
    desk.half_open("p1")
    assert skipped(desk.plan(headers=mode)) == [("p1", "excluded")]
    assert desk.observer.of("auto_excluded") == [("p1", "m", "score")]
    desk.plan(headers=mode)
    assert len(desk.observer.of("auto_excluded")) == 1


# --- incidents ---


@pytest.mark.parametrize(("count", "shut", "expected"), [(5, 3, True), (4, 2, False), (5, 2, False), (2, 1, False)])
def test_an_incident_is_more_than_half_of_the_providers_open(
    clock: FakeClock, count: int, shut: int, expected: bool
) -> None:
    desk = AutoDesk(clock, *FIVE[:count])
    desk.open(*(f"p{at}" for at in range(shut)))
    call = desk.plan()
    (plan,) = desk.observer.of("auto_planned")[0]
    assert (desk.marks(call) == ["incident"], plan.incident) == (expected, expected)  # type: ignore[attr-defined]
    assert any("incident" in line for line in call.ledger.lines) is expected


def test_an_incident_ends_when_a_circuit_is_half_open(desk: AutoDesk) -> None:
    desk.open("p2", "p3", "p4")
    assert desk.marks(desk.plan()) == ["incident"]
    desk.clock.move(31.0)
    assert desk.marks(desk.plan()) == []


# --- what the walk's failures do ---


def test_a_cooldown_and_an_open_circuit_are_no_exclusion(desk: AutoDesk) -> None:
    desk.fail(FIVE[0], "m", ErrorClass.RATE)
    desk.open("p1")
    assert skipped(desk.plan()) == [("p0", "cooldown"), ("p1", "circuit")]
