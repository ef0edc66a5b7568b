"""A pool, scored and ranked."""

from __future__ import annotations

import pytest

from tests.auto.pools import A, B, C, entry
from troyproxy.auto.board import board_of, kind_of
from troyproxy.auto.factors import Demand, Standing
from troyproxy.auto.tiers import EconomicTier
from troyproxy.auto.weights import DEFAULT, PACKS
from troyproxy.resilience.breaker import CircuitState

BAD = Standing(quota=0.0, circuit=CircuitState.OPEN, input_usd=90.0, samples=20, p95_ms=9e4, sigma_ms=9e4, fitness=0.0)
POOL = (entry("a", A), entry("b", B), entry("c", C))


def test_an_empty_pool_has_an_empty_board() -> None:
    board = board_of((), Demand(), DEFAULT)
    assert (board.scored, board.ranking, board.low) == ((), (), frozenset())


def test_scores_stand_in_pool_order_and_the_ranking_has_the_best_first() -> None:
    board = board_of(POOL, Demand(), PACKS["cost-saver"])
    assert [one.identity for one in board.scored] == ["a", "b", "c"]
    assert board.ranking == (1, 2, 0)


def test_equal_scores_go_by_price_then_latency_then_place() -> None:
    even = {**PACKS["offline-friendly"], "costInv": 0.0, "latencyInv": 0.0, "stability": 0.0}
    dear, slow, fast = Standing(input_usd=2.0), Standing(input_usd=1.0), Standing(input_usd=1.0, samples=3, p95_ms=9.0)
    pool = (entry("dear", dear), entry("slow", slow), entry("also", slow), entry("fast", fast))
    assert board_of(pool, Demand(), even).ranking == (3, 1, 2, 0)


def test_a_score_below_a_fifth_is_low_but_never_a_sole_candidates() -> None:
    bad = entry("bad", BAD)
    assert board_of((POOL[0], bad), Demand(), DEFAULT).low == {1}
    assert board_of((bad,), Demand(), DEFAULT).low == frozenset()


@pytest.mark.parametrize(("one", "other", "same"), [(0, 15, True), (15, 16, False), (16, 50, True), (50, 51, False)])
def test_demands_of_one_kind_are_those_with_the_same_scores(one: float, other: float, same: bool) -> None:
    assert (kind_of(Demand(one)) == kind_of(Demand(other))) is same
    pool = [entry(tier.value, Standing(model_tier=tier)) for tier in EconomicTier]
    boards = [board_of(pool, Demand(each), DEFAULT) for each in (one, other)]
    assert (boards[0] == boards[1]) is same


def test_a_recommended_tier_is_part_of_the_kind() -> None:
    assert kind_of(Demand(0.0, EconomicTier.FREE)) != kind_of(Demand(0.0, EconomicTier.CHEAP))
