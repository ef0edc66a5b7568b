"""Exploration, what is remembered of it, and incidents, through the planner that serves traffic."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from tests.fakes import FakeClock
from tests.proxy.auto_desk import FIVE, AutoDesk, providers, skipped
from troyproxy.resilience.classes import ErrorClass

PLANS = 10_000


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


def test_the_rate_zero_is_for_the_variant_that_has_its_own_rate_too(desk: AutoDesk) -> None:
    assert {desk.order("auto/smart")[0] for _ in range(1_000)} == {"p0"}


def test_another_rate_is_not(clock: FakeClock) -> None:
    desk = AutoDesk(clock, exploration=1e-9)
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


def test_what_is_only_tried_out_is_not_remembered_but_for_a_session(clock: FakeClock) -> None:
    desk = AutoDesk(clock, exploration=1.0)
    assert not desk.plan("auto/lkgp").remember
    assert desk.plan("auto/lkgp", headers={"x-troy-session": "s1"}).remember
    desk.auto.exploration = 0.0
    assert desk.plan("auto/lkgp").remember


def test_a_probe_is_not_remembered_as_what_was_chosen(desk: AutoDesk) -> None:
    desk.attempts("p4", "-----")
    desk.clock.move(301.0)
    call = desk.plan()
    assert (desk.marks(call), call.remember) == (["probe"], ())


def test_a_session_that_has_its_target_is_no_probe(desk: AutoDesk) -> None:
    held = {"x-troy-session": "s1"}
    desk.auto.served(desk.plan(headers=held).remember, desk.target("p0"))
    desk.attempts("p4", "-----")
    desk.clock.move(301.0)
    call = desk.plan(headers=held)
    assert (providers(call), desk.marks(call)) == (["p0", "p1", "p2", "p3", "p4"], ["known"])
    assert desk.marks(desk.plan()) == ["probe"]


def test_exploration_stays_within_the_budget(clock: FakeClock) -> None:
    desk = AutoDesk(clock, exploration=1.0)
    budget = {"x-troy-budget-usd": "0.0022"}
    assert {desk.order(headers=budget)[0] for _ in range(200)} == {"p1"}


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
