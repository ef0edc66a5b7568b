"""The exclusion ladder: terms, probes, and what lets a candidate back in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.auto.exclusion import (
    FRESH,
    TERMS_S,
    WINDOW,
    Place,
    Record,
    attempted,
    excluded,
    leased,
    place,
    probe_limit_s,
    returned,
)

MINUTE = 60.0


def _after(record: Record, outcomes: str, *, at: float = 0.0) -> Record:
    for step, outcome in enumerate(outcomes):
        record = attempted(record, at + step, ok=outcome == "+")
    return record


def test_the_ladder_is_five_ten_twenty_thirty_thirty_minutes() -> None:
    record, now, terms = FRESH, 0.0, []
    for _ in range(5):
        record = excluded(record, now)
        assert record.until is not None
        terms.append((record.until - now) / MINUTE)
        now = record.until
        assert place(record, now) is Place.PROBE
        record = leased(record, now, limit_s=15.0)
        now += 1
    assert terms == [5, 10, 20, 30, 30]


def test_a_candidate_is_out_until_its_term_ends() -> None:
    record = excluded(FRESH, 100.0)
    assert place(record, 399.9) is Place.OUT
    assert place(record, 400.0) is Place.PROBE


def test_one_probe_is_in_flight_at_a_time() -> None:
    record = leased(excluded(FRESH, 0.0), 300.0, limit_s=15.0)
    assert place(record, 314.9) is Place.OUT
    assert place(record, 315.0) is Place.PROBE


def test_a_probe_has_a_quarter_of_the_usual_time_and_at_least_five_seconds() -> None:
    assert (probe_limit_s(60.0), probe_limit_s(4.0)) == (15.0, 5.0)


def test_a_probe_that_came_to_nothing_is_made_again() -> None:
    record = returned(leased(excluded(FRESH, 0.0), 300.0, limit_s=15.0))
    assert place(record, 301.0) is Place.PROBE


def test_a_good_probe_lets_it_in_and_begins_the_ladder_anew() -> None:
    record = attempted(excluded(excluded(FRESH, 0.0), 300.0), 900.0, ok=True)
    assert record == FRESH


def test_a_bad_probe_is_the_next_rung() -> None:
    record = attempted(excluded(FRESH, 0.0), 300.0, ok=False)
    assert record.until == 300.0 + TERMS_S[1]


def test_a_straggler_of_before_the_exclusion_does_not_lengthen_it() -> None:
    record = excluded(FRESH, 0.0)
    assert attempted(record, 10.0, ok=False) == record


def test_a_clean_hour_begins_the_ladder_anew() -> None:
    record = excluded(excluded(FRESH, 0.0), 300.0)
    assert record.until == 900.0
    assert excluded(record, 900.0 + 3600.0).row == 1
    assert excluded(record, 900.0 + 3599.0).row == 3


@pytest.mark.parametrize(("outcomes", "out"), [("----", False), ("-----", True), ("+----", False), ("+-----", True)])
def test_fewer_than_one_in_five_successes_of_at_least_five_excludes(outcomes: str, out: bool) -> None:
    assert (place(_after(FRESH, outcomes), 10.0) is Place.OUT) is out


def test_attempts_of_more_than_ten_minutes_ago_do_not_count() -> None:
    record = _after(_after(FRESH, "----"), "-", at=601.0)
    assert place(record, 602.0) is Place.IN


def test_the_last_twenty_attempts_decide() -> None:
    record = _after(FRESH, "+" * 30 + "-" * 16)
    assert place(record, 50.0) is Place.IN
    assert place(attempted(record, 50.0, ok=False), 50.0) is Place.OUT


@given(st.lists(st.tuples(st.floats(0, 4000), st.booleans()), max_size=60))
def test_a_record_is_bounded_and_its_place_is_told_at_any_time(steps: list[tuple[float, bool]]) -> None:
    record, now = FRESH, 0.0
    for gap_s, ok in steps:
        now += gap_s
        record = attempted(record, now, ok=ok)
        assert len(record.outcomes) <= WINDOW
        assert place(record, now) in Place


def test_an_attempt_that_is_older_than_the_probe_gives_no_lease_back() -> None:
    record = leased(excluded(FRESH, 0.0), 300.0, limit_s=15.0)
    assert returned(record, began=299.0) is record
    assert returned(FRESH) is FRESH
