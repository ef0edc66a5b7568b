"""Members by account, where a strategy chooses between accounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.proxy.rig import ALPHA, BETA, combo
from troyproxy.routing.expansion import Accounts, by_account
from troyproxy.routing.members import Candidate, Group, candidate_of, leaves
from troyproxy.routing.strategies import BY_ACCOUNT, STRATEGIES, TO_LEAVES

ONE, TWO = candidate_of(ALPHA, "m1", weight=2.0), candidate_of(BETA, "m2")
NAMES: Mapping[str, Sequence[str]] = {"alpha/m1": ["low", "high"], "beta/m2": ["only"]}


def having(names: Mapping[str, Sequence[str]] = NAMES) -> Accounts:
    return lambda candidate: names.get(candidate.spec, ())


def tree(strategy: str, *units: Candidate | Group) -> Group:
    return Group(combo("c", strategy=strategy), units)


def identities(group: Group) -> list[str]:
    return [leaf.identity for leaf in leaves(group)]


@pytest.mark.parametrize("strategy", sorted(BY_ACCOUNT))
def test_a_member_stands_for_each_of_its_accounts_in_their_order(strategy: str) -> None:
    spread = by_account(tree(strategy, ONE, TWO), having())
    assert identities(spread) == ["alpha/m1#low", "alpha/m1#high", "beta/m2#only"]


@pytest.mark.parametrize("strategy", sorted(STRATEGIES.keys() - BY_ACCOUNT))
def test_other_strategies_see_members_as_they_are_written(strategy: str) -> None:
    group = tree(strategy, ONE, TWO)
    assert by_account(group, having()) is group


def test_weight_and_facts_stay() -> None:
    first = by_account(tree("p2c", ONE), having()).units[0]
    assert (first.weight, isinstance(first, Candidate) and first.facts) == (2.0, ONE.facts)


def test_a_pinned_member_stays_and_is_not_marked() -> None:
    pinned = candidate_of(ALPHA, "m1", account="high")
    kept = by_account(tree("fill-first", pinned), having()).units
    assert kept == (pinned,)
    assert pinned.member == "alpha/m1#high"


def test_accounts_of_one_member_are_one_member() -> None:
    spread = by_account(tree("fill-first", ONE), having())
    assert {leaf.member for leaf in leaves(spread)} == {"alpha/m1"}


def test_a_member_without_an_account_stays_as_it_is() -> None:
    assert by_account(tree("p2c", ONE), having({})).units == (ONE,)


def test_nested_groups_go_by_their_own_strategy() -> None:
    inner, other = tree("fill-first", ONE), tree("random", ONE)
    assert identities(by_account(tree("random", inner), having())) == ["alpha/m1#low", "alpha/m1#high"]
    assert identities(by_account(tree("lkgp", other, TWO), having())) == ["alpha/m1", "beta/m2#only"]


@pytest.mark.parametrize("strategy", sorted(TO_LEAVES))
def test_a_strategy_that_measures_models_sees_the_members_of_the_combos_in_it(strategy: str) -> None:
    inner = Group(combo("inner", strategy="random"), (TWO,))
    spread = by_account(tree(strategy, ONE, inner), having({}))
    assert spread.units == (ONE, TWO)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES.keys() - TO_LEAVES))
def test_any_other_strategy_sees_a_combo_as_one_unit(strategy: str) -> None:
    inner = Group(combo("inner", strategy="random"), (TWO,))
    assert len(by_account(tree(strategy, inner), having({})).units) == 1
