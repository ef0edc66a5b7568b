from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.catalog.combos import STRATEGY_NAMES
from troyproxy.routing.context import Cursor, Effect, RouteContext, Strategy
from troyproxy.routing.members import Candidate
from troyproxy.routing.strategies import STRATEGIES


def units(names: str) -> list[Candidate]:
    return [Candidate(name, None, name) for name in names]


def lead(names: str, cursor: Cursor | None, *, circle: str = "", sticky: int = 1) -> tuple[str, Cursor]:
    """Who leads the next plan of a round-robin, and where the circle stands after it."""
    ctx = RouteContext(0.0, Random(1), "c", cursor, sticky, tuple(circle))
    order = STRATEGIES["round-robin"](units(names), ctx)
    (effect,) = order.effects
    assert isinstance(effect.state, Cursor)
    return order.members[0].identity, effect.state


def leads(names: str, plans: int, *, circle: str = "", sticky: int = 1, cursor: Cursor | None = None) -> str:
    said = ""
    for _ in range(plans):
        name, cursor = lead(names, cursor, circle=circle, sticky=sticky)
        said += name
    return said


@pytest.mark.parametrize(("name", "strategy"), STRATEGIES.items())
def test_a_strategy_is_named_documented_and_pure(name: str, strategy: Strategy) -> None:
    members = units("abc")
    before = list(members)
    order = strategy(members, RouteContext(now=0.0, rng=Random(1)))
    assert inspect.getdoc(strategy)
    assert getattr(strategy, "__name__", "") == name.replace("-", "_")
    assert sorted(m.identity for m in order.members) == ["a", "b", "c"]
    assert members == before


@pytest.mark.parametrize("strategy", STRATEGIES.values())
def test_a_strategy_of_nobody_orders_nobody(strategy: Strategy) -> None:
    assert strategy([], RouteContext(now=0.0, rng=Random(1))).members == ()


def test_every_strategy_here_is_one_of_the_design() -> None:
    assert set(STRATEGIES) <= set(STRATEGY_NAMES)


@pytest.mark.parametrize("name", ["fallback", "priority"])
def test_fallback_and_priority_keep_the_saved_order(name: str) -> None:
    order = STRATEGIES[name](units("abc"), RouteContext(now=0.0, rng=Random(1)))
    assert [m.identity for m in order.members] == ["a", "b", "c"]
    assert order.effects == ()


def test_round_robin_starts_at_the_first_and_goes_round() -> None:
    assert leads("abc", 7) == "abcabca"


def test_round_robin_keeps_the_circle_behind_its_leader() -> None:
    ctx = RouteContext(0.0, Random(1), "c", Cursor("a"))
    order = STRATEGIES["round-robin"](units("abc"), ctx)
    assert [m.identity for m in order.members] == ["b", "c", "a"]
    assert order.effects == (Effect("c", Cursor("b", 0)),)


def test_a_sticky_circle_stays_for_its_plans() -> None:
    assert leads("abc", 7, sticky=2) == "aabbcca"


def test_a_stop_that_is_no_longer_eligible_is_left_at_once() -> None:
    assert lead("ac", Cursor("b", left=5), circle="abc", sticky=9)[0] == "c"


def test_lowering_sticky_ends_a_long_stay() -> None:
    assert lead("abc", Cursor("a", left=50), sticky=2)[1] == Cursor("a", left=1)


def test_a_removed_stop_starts_the_circle_again() -> None:
    assert lead("abc", Cursor("gone"))[0] == "a"


def test_a_member_that_comes_back_takes_its_old_turn() -> None:
    _, cursor = lead("ac", Cursor("a"), circle="abc")
    assert leads("abc", 3, circle="abc", cursor=cursor) == "abc"


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 5), st.data())
def test_survivors_share_evenly(size: int, sticky: int, rounds: int, data: st.DataObject) -> None:
    circle = "abcdef"[:size]
    names = "".join(sorted(data.draw(st.sets(st.sampled_from(circle), min_size=1))))
    shares = Counter(leads(names, rounds * sticky * len(names), circle=circle, sticky=sticky))
    assert set(shares.values()) == {rounds * sticky}


def test_random_gives_every_order_about_the_same_chance() -> None:
    rng = Random(7)
    orders = Counter(shuffled(units("abc"), rng) for _ in range(6000))
    assert len(orders) == 6
    assert all(850 < count < 1150 for count in orders.values())


def test_random_is_the_same_for_the_same_seed() -> None:
    assert shuffled(units("abcdef"), Random(3)) == shuffled(units("abcdef"), Random(3))


def shuffled(members: Sequence[Candidate], rng: Random) -> str:
    order = STRATEGIES["random"](members, RouteContext(now=0.0, rng=rng))
    return "".join(m.identity for m in order.members)
