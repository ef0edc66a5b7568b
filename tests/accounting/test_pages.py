"""Pages of requests: nothing twice, nothing lost, whatever is in memory and whatever is stored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.telemetry.rows import row
from troyproxy.accounting.pages import Page, Position, Wanted, merged, position
from troyproxy.accounting.records import UsageRow


def rows(*places: tuple[float, str]) -> list[UsageRow]:
    return [row(request_id=name, at=at) for at, name in places]


def ids(page: Page) -> list[str]:
    return [each.request_id for each in page.rows]


@pytest.mark.parametrize(
    ("wanted", "takes"),
    [
        ({}, True),
        ({"since": 1_800_000_000.0}, True),
        ({"since": 1_800_000_000.1}, False),
        ({"key": "k1"}, True),
        ({"key": "laptop"}, True),
        ({"key": "k2"}, False),
        ({"model": "combo1"}, True),
        ({"model": "m1"}, True),
        ({"model": "alpha/m1"}, True),
        ({"model": "alpha"}, False),
        ({"status": 200}, True),
        ({"status": 500}, False),
        ({"outcome": "ok"}, True),
        ({"outcome": "refused"}, False),
        ({"key": "k1", "status": 500}, False),
    ],
)
def test_a_request_is_taken_when_everything_fits(wanted: dict[str, Any], *, takes: bool) -> None:
    assert Wanted(**wanted).takes(row()) is takes


@pytest.mark.parametrize(
    ("wanted", "selective"),
    [({}, False), ({"since": 1.0}, False), ({"key": "k"}, True), ({"status": 200}, True), ({"outcome": "ok"}, True)],
)
def test_a_wish_for_more_than_a_time_is_selective(wanted: dict[str, Any], *, selective: bool) -> None:
    assert Wanted(**wanted).selective is selective


def test_fresh_rows_are_put_in_their_places() -> None:
    page = merged(Page(rows((3, "c"), (1, "a")), None), rows((2, "b"), (4, "d")), before=None, limit=9)
    assert (ids(page), page.end) == (["d", "c", "b", "a"], None)


def test_a_row_that_both_have_is_there_once_and_fresh() -> None:
    fresh = [row(request_id="a", at=1.0, status=500)]
    page = merged(Page(rows((1, "a")), None), fresh, before=None, limit=9)
    assert [each.status for each in page.rows] == [500]


def test_what_does_not_fit_waits_for_the_next_page() -> None:
    page = merged(Page(rows((2, "b"), (1, "a")), Position(1, "a")), rows((3, "c")), before=None, limit=2)
    assert (ids(page), page.end) == (["c", "b"], Position(2, "b"))


def test_a_fresh_row_of_another_page_is_left_out() -> None:
    stored = Page(rows((5, "e"), (4, "d")), Position(4, "d"))
    page = merged(stored, rows((6, "f"), (3, "c")), before=Position(6, "f"), limit=9)
    assert (ids(page), page.end) == (["e", "d"], Position(4, "d"))


def test_an_end_without_an_id_is_before_all_of_its_instant() -> None:
    page = merged(Page((), Position(4, "")), rows((4, "d"), (3, "c")), before=None, limit=9)
    assert ids(page) == ["d"]


PLACES = st.lists(st.tuples(st.integers(0, 9).map(float), st.sampled_from("abcdefghij")), unique_by=lambda p: p[1])


@given(PLACES, st.data(), st.integers(1, 4))
def test_page_after_page_shows_every_request_once_and_in_order(
    places: list[tuple[float, str]], data: st.DataObject, limit: int
) -> None:
    everything = sorted(rows(*places), key=position, reverse=True)
    stored = [each for each in everything if data.draw(st.booleans())]
    fresh = [each for each in everything if each not in stored or data.draw(st.booleans())]
    seen: list[str] = []
    before: Position | None = None
    for _ in range(len(everything) + 1):
        behind = [each for each in stored if before is None or position(each) < before]
        more = len(behind) > limit
        page = Page(behind[:limit], position(behind[limit - 1]) if more else None)
        shown = merged(page, fresh, before=before, limit=limit)
        seen += ids(shown)
        before = shown.end
        if before is None:
            break
    assert seen == [each.request_id for each in everything]
