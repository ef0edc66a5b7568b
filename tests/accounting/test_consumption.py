"""What an account has used of its own quota, by the windows of the calendar."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.accounting.consumption import PERIODS, Consumption, window_of

NOW = datetime(2027, 2, 28, 23, 59, 30, tzinfo=UTC).timestamp()


def _at(*moment: int) -> float:
    return datetime(*moment, tzinfo=UTC).timestamp()  # type: ignore[arg-type,misc]  # the parts of a date


@pytest.mark.parametrize(
    ("period", "begin", "end"),
    [
        ("minute", (2027, 2, 28, 23, 59), (2027, 3, 1)),
        ("hour", (2027, 2, 28, 23), (2027, 3, 1)),
        ("day", (2027, 2, 28), (2027, 3, 1)),
        ("month", (2027, 2, 1), (2027, 3, 1)),
    ],
)
def test_windows_are_those_of_the_utc_calendar(period: str, begin: tuple[int, ...], end: tuple[int, ...]) -> None:
    assert window_of(period, NOW) == (_at(*begin), _at(*end))


@given(st.sampled_from(PERIODS), st.floats(0, 4_000_000_000))
def test_a_window_holds_its_moment_and_ends_where_the_next_begins(period: str, at: float) -> None:
    begin, end = window_of(period, at)
    assert begin <= at < end
    assert window_of(period, end)[0] == end


def test_everything_is_counted_in_each_period() -> None:
    used = Consumption()
    used.add(NOW, requests=1)
    used.add(NOW, tokens=30, usd=0.5)
    for period in PERIODS:
        window = used.used(period, NOW)
        assert (window.of("requests"), window.of("tokens"), window.of("usd")) == (1, 30, 0.5)


def test_a_new_window_begins_at_nothing() -> None:
    used = Consumption()
    used.add(NOW, requests=5)
    assert used.used("minute", NOW + 30).requests == 0
    used.add(NOW + 30, requests=1)
    assert [used.used(period, NOW + 30).requests for period in PERIODS] == [1, 1, 1, 1]


def test_an_attempt_that_began_in_an_earlier_window_is_not_of_this_one() -> None:
    used = Consumption()
    used.add(NOW + 30, requests=1)
    used.add(NOW, tokens=100)
    assert used.used("minute", NOW + 30).tokens == 0


def test_a_sum_counts_for_its_period_only() -> None:
    used = Consumption()
    used.add_to("month", NOW, requests=7)
    assert [used.used(period, NOW).requests for period in PERIODS] == [0, 0, 0, 7]


def test_what_was_never_used_is_nothing_and_has_an_end() -> None:
    window = Consumption().used("day", NOW)
    assert (window.requests, window.tokens, window.usd, window.end) == (0, 0, 0.0, NOW + 30)
