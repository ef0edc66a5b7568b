"""How full quotas are: what upstreams say, what we count, and when either is forgotten."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import hypothesis.strategies as st
import pytest
from hypothesis import given

from troyproxy.accounting.finished import Finished
from troyproxy.accounting.past import AccountSum
from troyproxy.catalog.providers import Account
from troyproxy.proxy.quotas import BUCKETS, FORGET_S, QuotaDesk
from troyproxy.routing.readings import Quota

NOW = 1_800_000_000.0
"""08:00:00 UTC: a minute and an hour begin."""
NAME = ("alpha", "A")
ACCOUNT = Account("alpha#A", *NAME)


def owning(**quota: object) -> Account:
    return replace(ACCOUNT, quota=MappingProxyType(quota))


def headers(**named: str) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name.replace("_", "-").encode(), value.encode()) for name, value in named.items())


LOW = headers(x_ratelimit_limit_requests="100", x_ratelimit_remaining_requests="2", x_ratelimit_reset_requests="30s")


@pytest.fixture
def desk() -> QuotaDesk:
    return QuotaDesk()


def test_what_nobody_said_is_not_known(desk: QuotaDesk) -> None:
    desk.hear(ACCOUNT, headers(content_type="text/plain"), NOW)
    assert (desk.quotas(ACCOUNT, NOW), desk.signals(ACCOUNT, NOW)) == ((), ())


def test_a_signal_is_remembered_for_its_account_with_its_age(desk: QuotaDesk) -> None:
    desk.hear(ACCOUNT, LOW, NOW)
    assert desk.quotas(ACCOUNT, NOW + 5) == (Quota("requests", 0.02, NOW + 30, None),)
    assert [NOW + 5 - signal.at for signal in desk.signals(ACCOUNT, NOW + 5)] == [5]
    assert desk.quotas(replace(ACCOUNT, name="B"), NOW) == ()


def test_a_signal_is_forgotten_at_its_reset(desk: QuotaDesk) -> None:
    desk.hear(ACCOUNT, LOW, NOW)
    assert desk.quotas(ACCOUNT, NOW + 29.9)
    assert desk.quotas(ACCOUNT, NOW + 30) == ()


@pytest.mark.parametrize(
    ("bucket", "after_s"), [("requests", FORGET_S), ("requests-minute", 60.0), ("tokens-day", 86_400.0)]
)
def test_without_a_reset_it_is_forgotten_after_its_window_or_an_hour(
    desk: QuotaDesk, bucket: str, after_s: float
) -> None:
    named = {f"x_ratelimit_limit_{bucket}": "10", f"x_ratelimit_remaining_{bucket}": "1"}
    desk.hear(ACCOUNT, headers(**named), NOW)
    assert desk.quotas(ACCOUNT, NOW + after_s - 1)
    assert desk.quotas(ACCOUNT, NOW + after_s) == ()


def test_the_newest_signal_of_a_bucket_counts(desk: QuotaDesk) -> None:
    desk.hear(ACCOUNT, LOW, NOW)
    desk.hear(ACCOUNT, headers(x_ratelimit_limit_requests="100", x_ratelimit_remaining_requests="50"), NOW + 1)
    assert [quota.remaining for quota in desk.quotas(ACCOUNT, NOW + 1)] == [0.5]


def test_what_was_said_of_other_buckets_stays(desk: QuotaDesk) -> None:
    desk.hear(ACCOUNT, LOW, NOW)
    desk.hear(ACCOUNT, headers(x_ratelimit_limit_tokens="100", x_ratelimit_remaining_tokens="50"), NOW + 1)
    assert [(quota.name, quota.remaining) for quota in desk.quotas(ACCOUNT, NOW + 1)] == [
        ("requests", 0.02),
        ("tokens", 0.5),
    ]


@pytest.mark.parametrize("left", ["", "unknown", "-1", "12abc", "9" * 19, "1e3"])
def test_what_was_known_is_kept_when_a_later_answer_cannot_be_read(desk: QuotaDesk, left: str) -> None:
    odd = (LOW[0], (LOW[1][0], left.encode()), LOW[2])
    for heard in (LOW, odd, odd):
        desk.hear(ACCOUNT, heard, NOW)
    assert desk.quotas(ACCOUNT, NOW) == (Quota("requests", 0.02, NOW + 30, None),)


def test_what_was_known_is_kept_when_a_later_answer_has_no_limit_to_compare_with(desk: QuotaDesk) -> None:
    desk.hear(ACCOUNT, LOW, NOW)
    desk.hear(ACCOUNT, ((LOW[0][0], b"0"), *LOW[1:]), NOW)
    assert [quota.remaining for quota in desk.quotas(ACCOUNT, NOW)] == [0.02]


@pytest.mark.parametrize("read_between", [True, False])
def test_an_empty_bucket_of_which_something_is_left_now_is_not_known(desk: QuotaDesk, read_between: bool) -> None:
    """Azure tells what is left and not of how much: 0 is clear, and 5 only says that it is over."""
    for left in ("0", "5"):
        desk.hear(ACCOUNT, headers(x_ratelimit_remaining_requests=left), NOW)
        if read_between:
            desk.heard(ACCOUNT)
    assert desk.quotas(ACCOUNT, NOW) == ()


def test_a_share_that_is_known_stays_when_a_later_answer_tells_a_number_only(desk: QuotaDesk) -> None:
    desk.hear(ACCOUNT, LOW, NOW)
    desk.hear(ACCOUNT, headers(x_ratelimit_remaining_requests="5"), NOW)
    assert [quota.remaining for quota in desk.quotas(ACCOUNT, NOW)] == [0.02]


@given(st.lists(st.lists(st.sampled_from(["", "0", "7", "100", "0.5", "soon", "x"]), min_size=3, max_size=3)))
def test_reading_late_tells_the_same_as_reading_at_once(answers: list[list[str]]) -> None:
    early, late = QuotaDesk(), QuotaDesk()
    for number, (limit, used, reset) in enumerate(answers):
        said = headers(x_ratelimit_limit_a=limit, x_codex_a_used_percent=used, x_ratelimit_reset_a=reset)
        early.hear(ACCOUNT, said, NOW + number)
        early.heard(ACCOUNT)
        late.hear(ACCOUNT, said, NOW + number)
    assert early.heard(ACCOUNT) == late.heard(ACCOUNT)


def test_buckets_are_bounded_and_the_oldest_go_first(desk: QuotaDesk) -> None:
    for number in range(BUCKETS + 2):
        named = {f"x_ratelimit_limit_b{number}": "10", f"x_ratelimit_remaining_b{number}": "1"}
        desk.hear(ACCOUNT, headers(**named), NOW)
    names = [quota.name for quota in desk.quotas(ACCOUNT, NOW)]
    assert (len(names), names[0]) == (BUCKETS, "b2")


def test_accounts_are_bounded(desk: QuotaDesk) -> None:
    small = QuotaDesk(bound=1)
    small.hear(ACCOUNT, LOW, NOW)
    small.hear(replace(ACCOUNT, name="B"), LOW, NOW)
    assert small.quotas(ACCOUNT, NOW) == ()


def test_an_interval_of_the_account_is_the_length_where_no_better_is_known(desk: QuotaDesk) -> None:
    account = replace(ACCOUNT, quota_reset_interval_s=18_000.0)
    named = {"x_ratelimit_limit_requests_day": "10", "x_ratelimit_remaining_requests_day": "1"}
    desk.hear(account, (*LOW, *headers(**named)), NOW)
    assert [quota.length_s for quota in desk.quotas(account, NOW)] == [18_000.0, 86_400.0]


def test_requests_count_when_they_begin(desk: QuotaDesk) -> None:
    account = owning(requests=4, per="minute")
    desk.begin(NAME, NOW)
    assert desk.quotas(account, NOW) == (Quota("requests/minute", 0.75, NOW + 60, 60.0, own=True),)


def test_tokens_and_money_count_when_they_are_known(desk: QuotaDesk) -> None:
    account = owning(requests=10, tokens=1_000, usd=2.0, per="day")
    desk.begin(NAME, NOW)
    desk.count(Finished("alpha", "m1", "A", NOW, tokens=250, usd=0.5))
    left = {quota.name: quota.remaining for quota in desk.quotas(account, NOW)}
    assert left == {"requests/day": 0.9, "tokens/day": 0.75, "usd/day": 0.75}


def test_a_quota_is_used_up_exactly_at_its_number_and_comes_back_with_its_window(desk: QuotaDesk) -> None:
    account = owning(requests=3, per="hour")
    full = []
    for _ in range(3):
        desk.begin(NAME, NOW)
        full.append(desk.quotas(account, NOW)[0].used_up())
    assert full == [False, False, True]
    assert desk.quotas(account, NOW + 3_599.5)[0].used_up()
    assert desk.quotas(account, NOW + 3_600)[0].remaining == 1.0


def test_money_that_does_not_add_up_exactly_is_used_up_all_the_same(desk: QuotaDesk) -> None:
    for _ in range(10):
        desk.count(Finished("alpha", "m1", "A", NOW, usd=0.1))
    assert desk.quotas(owning(usd=1.0, per="month"), NOW)[0].used_up()


def test_an_account_that_was_never_used_has_all_of_its_own_quota(desk: QuotaDesk) -> None:
    assert [quota.remaining for quota in desk.quotas(owning(tokens=5, per="day"), NOW)] == [1.0]


def test_a_changed_quota_is_seen_at_once(desk: QuotaDesk) -> None:
    desk.begin(NAME, NOW)
    before = desk.quotas(owning(requests=2, per="day"), NOW)[0].remaining
    assert (before, desk.quotas(owning(requests=4, per="day"), NOW)[0].remaining) == (0.5, 0.75)


def test_a_reading_is_reckoned_once_a_second(desk: QuotaDesk) -> None:
    account = owning(requests=2, per="day")
    first = desk.quotas(account, NOW)
    assert desk.quotas(account, NOW + 0.9) is first
    assert desk.quotas(account, NOW + 1.0) is not first


def test_the_past_takes_the_place_of_what_was_counted(desk: QuotaDesk) -> None:
    account = owning(requests=10, tokens=100, per="day")
    desk.hear(ACCOUNT, LOW, NOW)
    desk.begin(NAME, NOW)
    desk.begin_anew([Finished("alpha", "m1", "A", NOW - 60, tokens=40), Finished("alpha", "m1", "A", NOW)])
    left = {quota.name: quota.remaining for quota in desk.quotas(account, NOW) if quota.own}
    assert left == {"requests/day": 0.8, "tokens/day": 0.6}
    assert desk.signals(ACCOUNT, NOW)


def test_sums_of_the_database_count_for_one_period(desk: QuotaDesk) -> None:
    desk.add_sum("month", NOW, AccountSum("alpha", "A", requests=6, tokens=1, usd=0.5))
    assert desk.quotas(owning(requests=10, per="month"), NOW)[0].remaining == pytest.approx(0.4)
    assert desk.quotas(owning(requests=10, per="day"), NOW)[0].remaining == 1.0


def test_what_was_said_of_an_account_that_is_another_now_is_forgotten_and_its_use_is_not(desk: QuotaDesk) -> None:
    account = owning(requests=2, per="day")
    desk.hear(account, LOW, NOW)
    desk.begin(NAME, NOW)
    desk.forget("alpha", "alpha#A")
    desk.forget("alpha", "alpha#nobody")
    assert [(quota.name, quota.remaining) for quota in desk.quotas(account, NOW)] == [("requests/day", 0.5)]
