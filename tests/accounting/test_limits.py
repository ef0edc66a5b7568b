"""Token buckets and budgets: what they admit, refuse, take and give back, over any sequence of requests."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from troyproxy.accounting.limits import (
    Account,
    Limit,
    Limits,
    Standing,
    admit,
    brought_to,
    charged,
    day_of,
    lacking,
    month_of,
    next_day,
    next_month,
    raised,
    settled,
    spoken,
    standings,
    wait_s,
)

NOW = datetime(2027, 1, 15, 12, tzinfo=UTC).timestamp()
NOBODY = Limits()
BOTH = Limits(requests=60, tokens=600)


def fresh(limits: Limits, at: float = NOW) -> Account:
    return brought_to(Account(at=at), limits, at)


def spent(day_usd: float = 0.0, month_usd: float = 0.0, at: float = NOW) -> Account:
    return Account(at=at, day=day_of(at), day_usd=day_usd, month=month_of(at), month_usd=month_usd)


def moment(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


# --- limits ---------------------------------------------------------------------------------------------------------


def test_the_names_are_those_of_the_configuration() -> None:
    given = {
        "requests_per_minute": 3.0,
        "tokens_per_minute": 5.0,
        "budget_usd_per_day": 0.5,
        "budget_usd_per_month": 7.0,
        "more": 1.0,
    }
    assert Limits.of(given) == Limits(requests=3.0, tokens=5.0, day_usd=0.5, month_usd=7.0)


@pytest.mark.parametrize(
    ("limits", "budgeted"), [(BOTH, False), (Limits(day_usd=0), True), (Limits(month_usd=1), True)]
)
def test_a_budget_may_be_for_a_day_or_a_month(limits: Limits, budgeted: bool) -> None:
    assert limits.budgeted is budgeted


# --- windows --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "day", "month"),
    [
        ("2027-01-31T23:59:59", "2027-02-01", "2027-02-01"),
        ("2027-02-01T00:00:00", "2027-02-02", "2027-03-01"),
        ("2028-02-28T12:00:00", "2028-02-29", "2028-03-01"),
        ("2027-12-31T00:00:01", "2028-01-01", "2028-01-01"),
    ],
)
def test_days_and_months_begin_at_midnight_utc(at: str, day: str, month: str) -> None:
    assert (next_day(moment(at)), next_month(moment(at))) == (moment(day), moment(month))


def test_a_moment_has_a_day_and_a_month() -> None:
    assert (day_of(NOW), month_of(NOW)) == ("2027-01-15", "2027-01")


# --- rates ----------------------------------------------------------------------------------------------------------


def test_without_limits_everything_is_admitted() -> None:
    assert admit(Account(at=NOW), NOBODY, NOW, 10**9)[1] is None


def test_a_bucket_begins_full_and_then_refuses() -> None:
    account, refused = fresh(Limits(requests=3)), []
    for _ in range(4):
        account, why = admit(account, Limits(requests=3), NOW, 0)
        refused.append(why)
    assert refused == [None, None, None, Limit.REQUESTS]


def test_a_refused_request_is_not_charged() -> None:
    limits = Limits(requests=60, tokens=10)
    account, _ = admit(Account(at=NOW), limits, NOW, 10)
    after, refused = admit(account, limits, NOW, 5)
    assert (refused, after.requests, after.tokens) == (Limit.TOKENS, account.requests, account.tokens)


def test_it_refills_evenly() -> None:
    empty = Account(at=NOW, requests=0.0, tokens=0.0)
    here = brought_to(empty, BOTH, NOW + 2)
    assert (here.requests, here.tokens) == (2, 20)


def test_an_estimate_beyond_the_bucket_is_admitted_when_it_is_full_and_leaves_a_debt() -> None:
    limits = Limits(tokens=100)
    account, first = admit(Account(at=NOW), limits, NOW, 250)
    _, second = admit(account, limits, NOW, 1)
    assert (first, account.tokens, second) == (None, -150, Limit.TOKENS)


def test_an_estimate_beyond_the_bucket_waits_until_it_is_full() -> None:
    limits = Limits(tokens=100)
    assert admit(Account(at=NOW, tokens=99.0), limits, NOW, 250)[1] is Limit.TOKENS


def test_a_clock_that_steps_back_takes_and_gives_nothing() -> None:
    here = brought_to(Account(at=NOW, requests=1.0), Limits(requests=60), NOW - 3600)
    assert (here.at, here.requests) == (NOW - 3600, 1.0)


def test_a_limit_that_was_lowered_cuts_what_is_left() -> None:
    assert fresh(Limits(requests=5)).requests == 5
    assert brought_to(fresh(Limits(requests=100)), Limits(requests=5), NOW).requests == 5


# --- corrections ----------------------------------------------------------------------------------------------------


def test_tokens_come_back() -> None:
    here = charged(fresh(Limits(tokens=100)), 80)
    assert settled(here, Limits(tokens=100), tokens=50, day_usd=0, month_usd=0).tokens == 70


def test_more_than_the_estimate_is_a_debt() -> None:
    here = charged(fresh(Limits(tokens=100)), 80)
    assert settled(here, Limits(tokens=100), tokens=-60, day_usd=0, month_usd=0).tokens == -40


def test_money_adds_up() -> None:
    here = settled(spent(1.0, 2.0), NOBODY, tokens=0, day_usd=0.5, month_usd=0.25)
    assert (here.day_usd, here.month_usd, here.tokens) == (1.5, 2.25, math.inf)


# --- budgets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("account", "limits", "refused"),
    [
        (spent(0.99), Limits(day_usd=1), None),
        (spent(1.0), Limits(day_usd=1), Limit.DAY),
        (spent(0.0, 5.0), Limits(day_usd=1, month_usd=5), Limit.MONTH),
        (spent(1.0, 5.0), Limits(day_usd=1, month_usd=5), Limit.MONTH),
        (spent(0.0), Limits(day_usd=0), Limit.DAY),
    ],
)
def test_a_budget_refuses_once_it_is_spent(account: Account, limits: Limits, refused: Limit | None) -> None:
    assert lacking(account, limits, 0) is refused


def test_a_new_day_begins_at_zero_and_the_month_goes_on() -> None:
    here = brought_to(spent(1.0, 1.0), NOBODY, next_day(NOW))
    assert (here.day_usd, here.month_usd) == (0.0, 1.0)


def test_a_new_month_begins_at_zero() -> None:
    assert brought_to(spent(1.0, 1.0), NOBODY, next_month(NOW)).month_usd == 0.0


def test_what_others_know_to_be_spent_counts_if_it_is_more() -> None:
    here = raised(spent(1.0, 5.0), spent(3.0, 4.0))
    assert (here.day_usd, here.month_usd) == (3.0, 5.0)


def test_what_others_know_of_another_day_and_month_counts_for_nothing() -> None:
    here = raised(spent(1.0, 1.0), spent(3.0, 4.0, at=next_month(NOW)))
    assert (here.day_usd, here.month_usd) == (1.0, 1.0)


# --- what a client is told ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("account", "refused", "tokens", "expected"),
    [
        (Account(at=NOW, requests=0.5, tokens=600.0), Limit.REQUESTS, 10, 0.5),
        (Account(at=NOW, requests=5.0, tokens=0.0), Limit.TOKENS, 10, 1.0),
        (Account(at=NOW, requests=0.0, tokens=0.0), Limit.REQUESTS, 100, 10.0),
        (Account(at=NOW, requests=5.0, tokens=-60.0), Limit.TOKENS, 10_000, 66.0),
        (spent(), Limit.DAY, 0, 12 * 3600.0),
        (spent(), Limit.MONTH, 0, 16.5 * 86400.0),
    ],
)
def test_a_refused_client_is_told_how_long_to_wait(
    account: Account, refused: Limit, tokens: int, expected: float
) -> None:
    assert wait_s(account, BOTH, refused, tokens) == pytest.approx(expected)


def test_a_client_is_told_where_it_stands() -> None:
    here = Account(at=NOW, requests=59.5, tokens=-60.0)
    requests, tokens = standings(here, BOTH)
    assert requests == Standing("requests", 60, 59, 0.5)
    assert (tokens.limit, tokens.remaining) == (600, 0)
    assert tokens.reset_s == pytest.approx(66.0)


def test_only_what_is_limited_is_told() -> None:
    assert standings(fresh(Limits(tokens=9, day_usd=1)), Limits(tokens=9, day_usd=1)) == (
        Standing("tokens", 9, 9, 0.0),
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0, "0s"), (-1, "0s"), (0.0004, "1ms"), (0.12, "120ms"), (0.9999, "1s"), (1, "1s"), (1.2, "2s")),
        *((59.01, "1m0s"), (60, "1m0s"), (360, "6m0s"), (3600, "1h0m0s"), (86399, "23h59m59s")),
    ],
)
def test_durations_are_spelled_as_openai_does(seconds: float, text: str) -> None:
    assert spoken(seconds) == text
