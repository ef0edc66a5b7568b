from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.routing.builders import combo, provider, snapshot
from troyproxy.catalog.combos import Combo, Member
from troyproxy.routing.context import Cursor, Effect, State
from troyproxy.routing.eligibility import Skip, SkipReason
from troyproxy.routing.members import Candidate, expand
from troyproxy.routing.order import Plan, Sight, is_fixed, order, sticky_of

PROVIDERS = (provider("alpha", "m1", "m2", "m3"), provider("beta", "m1", "m2"))


def plan(
    root: Combo,
    *others: Combo,
    out: Iterable[str] = (),
    cursors: Mapping[str, State] | None = None,
    seed: int = 1,
) -> Plan:
    """The plan for *root*, with the candidates named *out* in a cooldown."""
    closed = frozenset(out)

    def eligible(candidate: Candidate) -> SkipReason | None:
        if candidate.provider is None:
            return SkipReason.UNKNOWN_PROVIDER
        return SkipReason.COOLDOWN if candidate.identity in closed else None

    return order(expand(root, snapshot(*PROVIDERS, root, *others)), eligible, Sight(Random(seed), 0.0, cursors or {}))


def specs(made: Plan) -> list[str]:
    return [candidate.identity for candidate in made.candidates]


def test_the_saved_order_is_the_plan_of_a_fallback() -> None:
    assert specs(plan(combo("c", "alpha/m1", "beta/m1"))) == ["alpha/m1", "beta/m1"]


def test_what_is_not_eligible_is_skipped_with_its_reason() -> None:
    made = plan(combo("c", "alpha/m1", "nosuch/x", "beta/m1"), out=["alpha/m1"])
    assert specs(made) == ["beta/m1"]
    assert made.skipped == (
        Skip("alpha/m1", SkipReason.COOLDOWN, "alpha"),
        Skip("nosuch/x", SkipReason.UNKNOWN_PROVIDER, ""),
    )


def test_nobody_left_is_an_empty_plan_that_moves_no_cursor() -> None:
    made = plan(combo("c", "alpha/m1", strategy="round-robin"), out=["alpha/m1"])
    assert (made.candidates, made.effects, len(made.skipped)) == ((), (), 1)


def test_a_combo_without_members_is_an_empty_plan() -> None:
    assert plan(combo("c")) == Plan(())


def test_a_spec_is_planned_once_and_judged_once() -> None:
    asked: list[str] = []

    def eligible(candidate: Candidate) -> SkipReason | None:
        asked.append(candidate.identity)
        return SkipReason.CIRCUIT if candidate.model == "m2" else None

    root = combo("c", "alpha/m1", "alpha/m2", "combo:inner", "alpha/m1")
    inner = combo("inner", "alpha/m1", "alpha/m2")
    made = order(expand(root, snapshot(*PROVIDERS, root, inner)), eligible, Sight(Random(1), 0.0))
    assert (specs(made), len(made.skipped), asked) == (["alpha/m1"], 1, ["alpha/m1", "alpha/m2"])


def test_one_spec_pinned_to_two_accounts_is_two_candidates() -> None:
    pins = [Member(model="alpha/m1", account=name) for name in ("a", "b", "a")]
    assert specs(plan(combo("c", *pins))) == ["alpha/m1#a", "alpha/m1#b"]


def test_a_nested_combo_is_one_unit_ordered_by_its_own_strategy() -> None:
    outer = combo("outer", "alpha/m1", "combo:inner", strategy="round-robin")
    inner = combo("inner", "beta/m1", "beta/m2", strategy="round-robin")
    cursors = {"id-outer": Cursor("alpha/m1"), "id-inner": Cursor("beta/m1")}
    made = plan(outer, inner, cursors=cursors)
    assert specs(made) == ["beta/m2", "beta/m1", "alpha/m1"]
    assert made.effects == (Effect("id-outer", Cursor("combo/id-inner", 0)), Effect("id-inner", Cursor("beta/m2", 0)))


def test_a_nested_combo_without_eligible_members_is_no_stop_of_the_circle() -> None:
    outer = combo("outer", "alpha/m1", "combo:inner", "alpha/m2", strategy="round-robin")
    made = plan(outer, combo("inner", "beta/m1"), out=["beta/m1"], cursors={"id-outer": Cursor("alpha/m1")})
    assert specs(made) == ["alpha/m2", "alpha/m1"]


def test_a_combo_on_two_branches_moves_its_cursor_once() -> None:
    outer = combo("outer", "combo:left", "combo:right")
    inner = combo("inner", "beta/m1", "beta/m2", strategy="round-robin")
    made = plan(outer, combo("left", "combo:inner"), combo("right", "combo:inner"), inner)
    assert made.effects == (Effect("id-inner", Cursor("beta/m1", 0)),)


def test_concurrent_plans_differ_because_effects_are_applied_at_once() -> None:
    root = combo("c", "alpha/m1", "alpha/m2", strategy="round-robin")
    first = plan(root)
    moved = {e.combo_id: e.state for e in first.effects}
    assert specs(first) == list(reversed(specs(plan(root, cursors=moved))))


def test_a_combo_that_was_made_again_begins_its_circle_anew() -> None:
    old = replace(combo("c", "alpha/m1", "alpha/m2", strategy="round-robin"), created_at=1.0)
    moved = {e.combo_id: e.state for e in plan(old).effects}
    assert specs(plan(old, cursors=moved)) == ["alpha/m2", "alpha/m1"]
    assert specs(plan(replace(old, created_at=2.0), cursors=moved)) == ["alpha/m1", "alpha/m2"]


def test_a_ring_is_planned_without_end_and_without_repetition() -> None:
    a, b, c = combo("a", "combo:b", "alpha/m1"), combo("b", "combo:c"), combo("c", "combo:a")
    assert specs(plan(a, b, c)) == ["alpha/m1"]


def test_an_unknown_stored_strategy_behaves_as_fallback() -> None:
    assert specs(plan(combo("c", "beta/m1", "alpha/m1", strategy="nosuch"))) == ["beta/m1", "alpha/m1"]


@pytest.mark.parametrize(("value", "sticky"), [(3, 3), (1, 1), (0, 1), (-2, 1), (True, 1), ("4", 1), (None, 1)])
def test_sticky_is_a_whole_number_above_one_or_one(value: object, sticky: int) -> None:
    assert sticky_of(combo("c", config={"sticky": value})) == sticky


def test_a_sticky_circle_is_configured_on_the_combo() -> None:
    made = plan(combo("c", "alpha/m1", "alpha/m2", strategy="round-robin", config={"sticky": 4}))
    assert made.effects == (Effect("id-c", Cursor("alpha/m1", 3)),)


MEMBERS = ("alpha/m1", "alpha/m2", "alpha/m3", "beta/m1", "beta/m2", "combo:inner", "combo:c", "nosuch/x")
STRATEGIES = st.sampled_from(["fallback", "priority", "round-robin", "random", "nosuch"])


@given(
    st.lists(st.sampled_from(MEMBERS)),
    st.lists(st.sampled_from(MEMBERS)),
    st.sets(st.sampled_from(MEMBERS)),
    STRATEGIES,
    STRATEGIES,
)
def test_every_member_is_either_planned_or_skipped_and_only_once(
    outer: list[str], nested: list[str], out: set[str], first: str, second: str
) -> None:
    root, inner = combo("c", *outer, strategy=first), combo("inner", *nested, strategy=second)
    made = plan(root, inner, out=out)
    named = [*specs(made), *(skip.spec for skip in made.skipped)]
    everyone = {*outer, *(nested if "combo:inner" in outer else ())}
    reachable = {name for name in everyone if not name.startswith("combo:")}
    assert len(named) == len(set(named))
    assert {name for name in named if not name.startswith("combo/")} == reachable
    assert not out & set(specs(made))


@given(st.lists(st.sampled_from(MEMBERS)), STRATEGIES, st.integers(0, 2**64 - 1))
def test_the_same_seed_makes_the_same_plan(members: list[str], strategy: str, seed: int) -> None:
    root = combo("c", *members, strategy=strategy)
    assert plan(root, seed=seed) == plan(root, seed=seed)


@pytest.mark.parametrize(
    ("strategy", "fixed"), [("fallback", True), ("nosuch", True), ("auto", False), ("lkgp", False)]
)
def test_only_a_saved_or_unknown_order_is_fixed(strategy: str, fixed: bool) -> None:
    assert is_fixed(strategy) is fixed
