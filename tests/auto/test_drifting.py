"""Candidates whose tool calls came as text lately go last on tool turns, whatever else speaks for them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.auto.pools import A, B, C, entry
from troyproxy.auto.decision import Decision, Entry, Rules, decide
from troyproxy.auto.exclusion import Place
from troyproxy.auto.factors import Demand
from troyproxy.auto.variants import Known

POOL = (entry("a", A, usd=0.03), entry("b", B, usd=0.02), entry("c", C, usd=0.01))
"""By default weights a leads, then b, then c."""


def _decide(rules: Rules, pool: tuple[Entry, ...] = POOL, seed: int = 0) -> Decision:
    return decide(pool, Demand(), rules, Random(seed))


def test_who_drifts_goes_last_and_the_others_keep_their_order() -> None:
    assert _decide(Rules(drifting=frozenset("a"))).order == ("b", "c", "a")


def test_where_everybody_drifts_the_score_decides() -> None:
    assert _decide(Rules(drifting=frozenset("abc"))).order == ("a", "b", "c")


def test_the_scores_are_told_as_they_are() -> None:
    assert _decide(Rules(drifting=frozenset("a"))).scored == _decide(Rules()).scored


def test_the_last_known_good_is_not_recalled_while_it_drifts() -> None:
    decision = _decide(Rules(last="a", known=Known.FIRST, pinned=True, drifting=frozenset("a")))
    assert (decision.order, decision.known) == (("b", "c", "a"), False)


def test_it_is_recalled_where_everybody_drifts() -> None:
    decision = _decide(Rules(last="c", known=Known.FIRST, drifting=frozenset("abc")))
    assert (decision.order[0], decision.known) == ("c", True)


@pytest.mark.parametrize("seed", range(20))
def test_exploring_never_puts_it_first(seed: int) -> None:
    assert _decide(Rules(exploration=1.0, drifting=frozenset("a")), seed=seed).order == ("c", "b", "a")


def test_nobody_is_explored_when_only_one_does_not_drift() -> None:
    decision = _decide(Rules(exploration=1.0, drifting=frozenset("ab")))
    assert (decision.order[0], decision.explored) == ("c", False)


def test_a_probe_that_drifts_does_not_lead() -> None:
    pool = (replace(POOL[0], place=Place.PROBE), *POOL[1:])
    decision = _decide(Rules(drifting=frozenset("a")), pool)
    assert (decision.order, decision.probe) == (("b", "c", "a"), None)


def test_those_who_come_back_together_have_it_last_too() -> None:
    pool = tuple(replace(one, place=Place.OUT, back_at=at) for at, one in enumerate(POOL))
    decision = _decide(Rules(drifting=frozenset("a")), pool)
    assert (decision.order, decision.readmitted) == (("b", "c", "a"), True)


@given(st.frozensets(st.sampled_from("abc")), st.integers(0, 99), st.floats(0, 1), st.none() | st.sampled_from("abc"))
def test_nobody_who_drifts_stands_before_somebody_who_does_not(
    late: frozenset[str], seed: int, exploration: float, last: str | None
) -> None:
    rules = Rules(drifting=late, exploration=exploration, last=last, known=Known.FIRST)
    order = _decide(rules, seed=seed).order
    assert sorted(order, key=lambda identity: identity in late) == list(order)
    assert sorted(order) == ["a", "b", "c"]
