"""Figures over many requests: nothing that nobody knew, nothing made up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.accounting.statistics import (
    DIMENSIONS,
    FAILED,
    MOST_LISTED,
    Cell,
    Figures,
    Group,
    Percentiles,
    Timing,
    Window,
    percentile,
    rate,
    report,
)

GROUP = Group("alpha", "m1", "k1", "daily", "ok")
UNKNOWN = Cell(GROUP, None, 1, None, None, None, None, None, None, None)


def cell(requests: int = 1, key_name: str | None = "ci", **names: Any) -> Cell:  # noqa: ANN401 - any name of a group
    return Cell(GROUP._replace(**names), key_name, requests, 2 * requests, 1, 100, 20, 30, 4, 0.5)


def window(*cells: Cell, timings: tuple[Timing, ...] = ()) -> Window:
    return Window(0.0, True, cells, timings)


def by(dimension: str, *cells: Cell) -> dict[tuple[str | None, ...], Figures]:
    return {tuple(names.values()): figures for names, figures in report(window(*cells)).by[dimension]}


def test_sums_are_added_up() -> None:
    totals = report(window(cell(3), cell(1, outcome="truncated"), UNKNOWN)).totals
    assert (totals.requests, totals.succeeded, totals.failed, totals.success_rate) == (5, 4, 1, 0.8)
    assert (totals.attempts, totals.attempts_per_request, totals.failovers) == (8, 1.6, 2)
    assert (totals.input_tokens, totals.output_tokens, totals.cached_tokens, totals.reasoning_tokens) == (
        200,
        40,
        60,
        8,
    )
    assert totals.cost_usd == 1.0


def test_without_requests_nothing_is_known() -> None:
    totals = report(window()).totals
    assert (totals.requests, totals.succeeded, totals.failed) == (0, 0, 0)
    assert [
        totals.success_rate,
        totals.attempts,
        totals.attempts_per_request,
        totals.failovers,
        totals.input_tokens,
        totals.cost_usd,
        totals.duration_ms.p50,
    ] == [None] * 7


def test_what_no_request_had_is_not_zero() -> None:
    totals = report(window(UNKNOWN)).totals
    assert (totals.requests, totals.cost_usd, totals.output_tokens, totals.attempts_per_request) == (
        1,
        None,
        None,
        None,
    )


@pytest.mark.parametrize("outcome", ["client_error", "cancelled"])
def test_what_the_client_did_is_no_success_and_no_failure(outcome: str) -> None:
    totals = report(window(cell(4, outcome=outcome))).totals
    assert (totals.succeeded, totals.failed, totals.success_rate) == (0, 0, None)


@pytest.mark.parametrize("outcome", sorted(FAILED))
def test_a_failure_lowers_the_rate(outcome: str) -> None:
    assert report(window(cell(1), cell(3, outcome=outcome))).totals.success_rate == 0.25


def test_a_rate_of_nothing_is_unknown() -> None:
    assert (rate(0, 0), rate(0, 2), rate(3, 1)) == (None, 0.0, 0.75)


def test_every_breakdown_tells_its_groups_apart() -> None:
    cells = (cell(1), cell(2, provider="beta"), cell(4, model="m2"), cell(8, key_id=None), cell(16, combo="b"))
    assert {names: figures.requests for names, figures in by("provider", *cells).items()} == {
        ("alpha",): 29,
        ("beta",): 2,
    }
    assert {names: figures.requests for names, figures in by("model", *cells).items()} == {
        ("alpha", "m1"): 25,
        ("alpha", "m2"): 4,
        ("beta", "m1"): 2,
    }
    assert {names[0]: figures.requests for names, figures in by("key", *cells).items()} == {"k1": 23, None: 8}
    assert {names: figures.requests for names, figures in by("combo", *cells).items()} == {("daily",): 15, ("b",): 16}


def test_a_key_has_its_name_when_somebody_knows_it() -> None:
    named = by("key", cell(key_name=None), cell(key_name="b"), cell(key_name="a"), cell(key_id="k2", key_name=None))
    assert set(named) == {("k1", "b"), ("k2", None)}


def test_the_most_requests_come_first_and_the_list_is_bounded() -> None:
    cells = [cell(number, combo=f"c{number}") for number in range(1, MOST_LISTED + 51)]
    listed = [names["combo"] for names, _ in report(window(*cells)).by["combo"]]
    assert (len(listed), listed[0], listed[-1]) == (MOST_LISTED, "c150", "c51")


def test_times_are_percentiles_in_all_and_by_group() -> None:
    timings = tuple(Timing(GROUP, float(number), None) for number in range(1, 101))
    slow = (Timing(GROUP._replace(provider="beta"), 1000.0, 7.0),)
    found = report(window(cell(100), cell(1, provider="beta"), timings=timings + slow))
    assert found.totals.duration_ms == Percentiles(51.0, 96.0)
    assert found.totals.first_token_ms == Percentiles(7.0, 7.0)
    providers = {names["provider"]: figures for names, figures in found.by["provider"]}
    assert providers["alpha"].duration_ms == Percentiles(50.0, 95.0)
    assert providers["alpha"].first_token_ms == Percentiles(None, None)
    assert providers["beta"].duration_ms == Percentiles(1000.0, 1000.0)


@given(st.lists(st.floats(0, 1e6), min_size=1).map(sorted), st.floats(0, 1))
def test_a_percentile_is_one_of_the_values_and_that_share_is_not_above_it(values: list[float], share: float) -> None:
    found = percentile(values, share)
    assert found in values
    assert sum(value <= (found or 0) for value in values) >= share * len(values) - 1e-6


CELLS = st.lists(
    st.builds(
        cell,
        st.integers(1, 50),
        provider=st.sampled_from(["alpha", "beta", None]),
        key_id=st.sampled_from(["k1", None]),
        combo=st.sampled_from(["a", None]),
        outcome=st.sampled_from(["ok", "refused", "cancelled"]),
    ),
    max_size=20,
)


@given(CELLS)
def test_the_groups_of_every_breakdown_add_up_to_the_totals(cells: list[Cell]) -> None:
    found = report(window(*cells))
    for dimension in DIMENSIONS:
        figures = [each for _, each in found.by[dimension]]
        assert sum(each.requests for each in figures) == found.totals.requests
        assert sum(each.succeeded for each in figures) == found.totals.succeeded
        assert sum(each.input_tokens or 0 for each in figures) == (found.totals.input_tokens or 0)
