"""The strategies that draw: weighted and strict-random."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.routing.rounds import context, names, units, weighing
from troyproxy.routing.context import Deck
from troyproxy.routing.strategies import STRATEGIES

weighted, strict_random = STRATEGIES["weighted"], STRATEGIES["strict-random"]


def test_weighted_draws_in_proportion() -> None:
    weights = {"a": 1.0, "b": 2.0, "c": 5.0}
    count = 8000
    leads = Counter(names(weighted(weighing(weights), context(seed)))[0] for seed in range(count))
    expected = {name: count * weight / 8 for name, weight in weights.items()}
    chi_squared = sum((leads[name] - expected[name]) ** 2 / expected[name] for name in weights)
    assert chi_squared < 13.8  # 2 degrees of freedom, p = 0.001; the seeds are fixed


def test_weighted_orders_the_rest_by_weight() -> None:
    order = names(weighted(weighing({"a": 1, "b": 3, "c": 2}), context()))
    rest = order[1:]
    assert rest == "".join(sorted(rest, key=lambda name: -{"a": 1, "b": 3, "c": 2}[name]))


@pytest.mark.parametrize("seed", range(50))
def test_a_weight_of_zero_is_never_drawn_while_another_is_above_it(seed: int) -> None:
    assert names(weighted(weighing({"a": 0, "b": 1, "c": 0}), context(seed)))[0] == "b"


def test_weights_that_are_all_zero_are_uniform() -> None:
    leads = Counter(names(weighted(weighing({"a": 0, "b": 0}), context(seed)))[0] for seed in range(1000))
    assert 400 < leads["a"] < 600


class _Last(Random):
    """Draws the largest number there is below one."""

    def random(self) -> float:
        return 1.0 - 2**-53


def test_a_draw_at_the_very_end_is_the_last_weight_above_zero() -> None:
    ctx = replace(context(), rng=_Last())
    assert names(weighted(weighing({"a": 0.1, "b": 0.2, "c": 0.7, "d": 0.0}), ctx))[0] == "c"


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=6), st.integers(0, 2**32))
def test_weighted_keeps_every_member_once(weights: list[float], seed: int) -> None:
    given_ = dict(zip("abcdef", weights, strict=False))
    assert sorted(names(weighted(weighing(given_), context(seed)))) == sorted(given_)


def _deal(eligible: str, deck: Deck | None, *, circle: str = "abcd", seed: int = 1) -> tuple[str, Deck]:
    order = strict_random(units(eligible), context(seed, circle=tuple(circle), state=deck))
    (effect,) = order.effects
    assert isinstance(effect.state, Deck)
    return names(order), effect.state


@given(st.integers(0, 2**32), st.integers(2, 6))
def test_strict_random_deals_whole_decks_without_a_repeat_across_the_seam(seed: int, size: int) -> None:
    circle = "abcdef"[:size]
    dealt, deck = "", None
    for turn in range(size * 5):
        order, deck = _deal(circle, deck, circle=circle, seed=seed + turn)
        dealt += order[0]
    cycles = [dealt[at : at + size] for at in range(0, len(dealt), size)]
    assert all(sorted(cycle) == list(circle) for cycle in cycles)
    assert all(before != after for before, after in pairwise(dealt))


def test_a_sole_member_is_dealt_every_time() -> None:
    order, deck = _deal("a", None, circle="a")
    again, _ = _deal("a", deck, circle="a")
    assert (order, again) == ("a", "a")


def test_a_card_whose_member_is_not_eligible_stays_in_the_deck() -> None:
    deck = Deck(tuple("abcd"), ("b", "c"), "a")
    order, after = _deal("acd", deck)
    assert order[0] == "c"
    assert after.left == ("b",)


def test_a_deck_in_which_no_card_can_be_dealt_is_made_anew() -> None:
    order, after = _deal("acd", Deck(tuple("abcd"), ("b",), "a"))
    assert order[0] in "cd"
    assert sorted((*after.left, order[0])) == list("abcd")


def test_a_deck_of_other_members_is_made_anew() -> None:
    _, after = _deal("abc", Deck(tuple("ab"), ("b",), "a"), circle="abc")
    assert after.members == tuple("abc")


def test_behind_the_dealt_card_come_the_rest_of_the_deck_then_the_others() -> None:
    order, _ = _deal("abcd", Deck(tuple("abcd"), ("d", "b"), "a"))
    assert order == "dbac"


def test_without_a_circle_the_eligible_members_are_the_deck() -> None:
    order = strict_random(units("ab"), context())
    assert sorted(names(order)) == ["a", "b"]
