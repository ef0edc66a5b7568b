"""The rolling leak rate: three leaks among the last twenty tool turns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from troyproxy.leaks.leak_rate import DRIFTING, TURNS, LeakRates


def after(turns: list[bool]) -> LeakRates:
    rates = LeakRates()
    for leaked in turns:
        rates.note("p", "m", leaked=leaked)
    return rates


def test_three_leaks_make_a_model_drift_and_two_do_not() -> None:
    assert [after([True] * count).drifting("p", "m") for count in (0, 2, 3)] == [False, False, True]


def test_good_turns_end_a_drift() -> None:
    assert not after([True] * 3 + [False] * 18).drifting("p", "m")


def test_a_leak_is_of_its_provider_and_model_only() -> None:
    rates = after([True] * 3)
    assert not rates.drifting("p", "other")
    assert not rates.drifting("q", "m")


@given(st.lists(st.booleans(), max_size=60))
def test_only_the_last_twenty_turns_count(turns: list[bool]) -> None:
    rates = after(turns)
    last = turns[-TURNS:]
    assert rates.leaks("p", "m") == (sum(last), len(last))
    assert rates.drifting("p", "m") == (sum(last) >= DRIFTING)


def test_the_pairs_not_seen_for_longest_are_forgotten() -> None:
    rates = LeakRates(bound=2)
    for model in ("a", "b", "a", "c"):
        rates.note("p", model, leaked=True)
    assert len(rates) == 2
    assert rates.leaks("p", "b") == (0, 0)
    assert rates.leaks("p", "a") == (2, 2)


def test_who_drifts_now_is_told_at_once() -> None:
    rates = LeakRates(bound=2, threshold=2)
    for model in ("a", "a", "b", "c", "c"):
        rates.note("p", model, leaked=True)
    assert rates.late() == {("p", "c")}
    rates.note("p", "c", leaked=False)
    assert rates.late() == {("p", "c")}


def test_it_can_forget_everything() -> None:
    rates = after([True] * 3)
    rates.clear()
    assert not rates.drifting("p", "m")
    assert not rates.late()
    assert len(rates) == 0
