"""What the auto engine tells, shares and keeps apart; and that explaining has no effect."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tests.fake_attempts import FakeSharedAttempts
from tests.fakes import FakeClock, settle
from tests.proxy.auto_desk import FIVE, KEYLESS, AutoDesk, priced, providers, skipped
from tests.proxy.rig import combo, model, provider
from troyproxy.accounting.finished import Finished
from troyproxy.auto.weights import PACKS
from troyproxy.catalog.combos import Member
from troyproxy.catalog.snapshot import build
from troyproxy.errors import BudgetExceeded
from troyproxy.proxy.auto_engine import SHOWN
from troyproxy.proxy.explain import explain
from troyproxy.proxy.learned import LearnedParameters
from troyproxy.proxy.measure_sharing import MeasureSharing

STRICT = {"x-troy-budget-policy": "strict", "x-troy-budget-usd": "0.000001"}


@pytest.fixture
def desk(clock: FakeClock) -> AutoDesk:
    return AutoDesk(clock)


def told(desk: AutoDesk, model: str = "auto", **given: object) -> list[dict[str, object]]:
    call = desk.call(model, **given)  # type: ignore[arg-type]  # as `call` has them
    found = explain(desk.planner, call, LearnedParameters(desk.clock))["auto"]
    assert isinstance(found, list)
    return found


# --- what is told ---


def test_a_plan_tells_task_specificity_and_the_best_scores(clock: FakeClock) -> None:
    desk = AutoDesk(clock, provider("p", *map(model, map(str, range(20))), accounts="A"))
    desk.snapshot = build(desk.snapshot.providers.values(), auto_models="all")
    lines = desk.plan(headers={"x-troy-task": "coding"}).ledger.lines
    assert lines[0].startswith("auto auto: task coding, specificity 0")
    assert lines[1].count("p/") == SHOWN


def test_a_plan_is_observed_with_the_score_of_who_leads(desk: AutoDesk) -> None:
    desk.plan("auto/cheap")
    ((plan,),) = desk.observer.of("auto_planned")
    row = told(desk, "auto/cheap")[0]["candidates"]
    assert isinstance(row, list)
    assert (plan.name, plan.provider, plan.model) == ("auto/cheap", "p0", "m")  # type: ignore[attr-defined]
    assert plan.score == row[0]["score"]  # type: ignore[attr-defined]


def test_explaining_excludes_leases_and_tells_nothing(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    desk.clock.move(300.0)
    desk.observer.told.clear()
    first, second = told(desk), told(desk)
    assert first == second
    assert (first[0]["probe"], desk.observer.told) == ("p0/m#A", [])
    assert desk.plan().probe == "p0/m#A"


def test_an_explanation_tells_exclusions_and_budgets(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    rows = told(desk, headers={"x-troy-budget-usd": "0.0033"})[0]["candidates"]
    assert isinstance(rows, list)
    by_name = {row["candidate"]: row for row in rows}
    assert {name: row["out"] for name, row in by_name.items()} == {
        "p0/m#A": "excluded",
        "p1/m#A": None,
        "p2/m#A": None,
        "p3/m#A": "budget",
        "p4/m#A": "budget",
    }
    assert by_name["p0/m#A"]["exclusion"] == {"state": "out", "until": desk.clock.now() + 300.0, "in_a_row": 1}
    assert (by_name["p3/m#A"]["score"], by_name["p1/m#A"]["place"]) == (None, 1)


# --- combos ---


def test_a_stored_combo_brings_its_weights_pool_budget_and_exploration(clock: FakeClock) -> None:
    config = {"candidatePool": ["p3", "p1"], "budgetUsd": 0.0022, "budgetPolicy": "strict", "explorationRate": 1.0}
    desk = AutoDesk(clock, *FIVE, combo("mine", strategy="auto", auto={**config, "weights": {"costInv": 1.0}}))
    (row,) = told(desk, "mine")
    assert row["weights"] == {"costInv": 1.0, **dict.fromkeys(set(row["weights"]) - {"costInv"}, 0.0)}  # type: ignore[call-overload]
    assert (desk.order("mine"), row["explored"]) == (["p1"], False)


def test_a_stored_rate_of_exploration_is_its_own_unless_the_request_names_a_variant(clock: FakeClock) -> None:
    mine = combo("mine", "p0/m", "p1/m", strategy="auto", auto={"explorationRate": 1.0})
    desk = AutoDesk(clock, *FIVE, mine)
    assert {desk.order("mine")[0] for _ in range(50)} == {"p1"}
    assert {desk.order("mine", headers={"x-troy-mode": "auto/fast"})[0] for _ in range(50)} == {"p0"}


def test_what_is_stored_and_cannot_be_read_is_plain_auto(clock: FakeClock) -> None:
    desk = AutoDesk(clock, *FIVE, combo("odd", "p0/m", "p1/m", strategy="auto", auto={"weights": 7}))
    assert desk.order("odd") == ["p0", "p1"]


def test_a_member_twice_in_the_tree_is_excluded_once(clock: FakeClock) -> None:
    inner = combo("inner", "p0/m", "p1/m", strategy="auto")
    outer = combo("outer", Member(combo="inner"), Member(combo="again"))
    again = combo("again", "p0/m", "p1/m", strategy="auto")
    bad = priced("p1", 100.0)
    desk = AutoDesk(clock, priced("p0", 0.0), bad, inner, again, outer)
    for name in ("p0", "p1"):
        desk.attempts(name, "+" * 10)
    desk.quota("p1", 0)
    desk.half_open("p1")
    call = desk.plan("outer", headers={"x-troy-mode": "cost-saver"})
    assert skipped(call) == [("p1", "excluded")]
    weights = repr(tuple(PACKS["cost-saver"].values()))
    assert desk.auto.exclusions.record(("p1", "m", "A"), weights).row == 1


def test_a_strict_budget_names_the_cheapest_estimate(desk: AutoDesk) -> None:
    error = desk.refused(desk.call(headers=STRICT))
    assert isinstance(error, BudgetExceeded)
    assert "$0.001025" in str(error)


def test_a_strict_budget_is_refused_where_no_price_is_known(clock: FakeClock) -> None:
    desk = AutoDesk(clock, provider("p", "m"))
    assert "no price is known" in str(desk.refused(desk.call(headers=STRICT)))


def test_weights_that_differ_remember_apart(desk: AutoDesk) -> None:
    desk.auto.served(desk.plan("auto/lkgp").remember, desk.target("p4"))
    assert desk.order("auto/lkgp")[0] == "p4"
    assert desk.order("auto/lkgp", headers={"x-troy-mode": "fast"})[0] == "p0"


def test_lkgp_has_no_margin_and_auto_has(desk: AutoDesk) -> None:
    for name, first in (("auto/lkgp", "p4"), ("auto", "p0")):
        desk.auto.served(desk.plan(name).remember, desk.target("p4"))
        assert desk.order(name)[0] == first


# --- other instances ---


def heard(ok: bool | None, *keys: tuple[str, str, str, str], at: float = 1.0) -> Finished:
    return Finished("p4", "m", "A", at, ok, remember=keys)


def test_what_served_elsewhere_is_remembered_here(desk: AutoDesk) -> None:
    desk.measuring.learn([heard(True, *desk.plan("auto/lkgp").remember)])
    assert desk.order("auto/lkgp")[0] == "p4"


@pytest.mark.parametrize(("ok", "first"), [(False, "p0"), (None, "p4")])
def test_what_failed_elsewhere_is_forgotten_here(desk: AutoDesk, ok: bool | None, first: str) -> None:
    desk.auto.served(desk.plan("auto/lkgp").remember, desk.target("p4"))
    desk.measuring.learn([heard(ok)])
    assert desk.order("auto/lkgp")[0] == first


def test_others_failures_exclude_nobody_here(desk: AutoDesk) -> None:
    desk.measuring.learn([Finished("p0", "m", "A", desk.clock.now(), False)] * 20)
    assert "p0" in desk.order()


@pytest.mark.anyio
async def test_instances_that_share_know_what_served_at_another(clock: FakeClock) -> None:
    here, there = AutoDesk(clock), AutoDesk(clock)
    shared = FakeSharedAttempts()
    ways = [
        MeasureSharing(way, desk.measuring, clock)
        for way, desk in ((shared, here), (FakeSharedAttempts(shared), there))
    ]
    for way in ways:
        await way.join()
    call = here.plan("auto/lkgp", key=KEYLESS)
    with here.attempt("p4", remember=call.remember):
        pass
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(way.follow()) for way in ways]
        await settle()
        for task in tasks:
            task.cancel()
    assert there.order("auto/lkgp", key=KEYLESS)[0] == "p4"
    assert there.order("auto/lkgp")[0] == "p0"


def test_a_seed_makes_a_plan_again(clock: FakeClock) -> None:
    desk = AutoDesk(clock, exploration=0.5)
    for seed in map(Random(3).getrandbits, [64] * 20):
        calls = [desk.call(), desk.call()]
        for call in calls:
            call.seed = seed
            desk.planner.plan(call)
        assert providers(calls[0]) == providers(calls[1])
