"""The retry budget over made-up seconds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from troyproxy.resilience.retry_budget import WINDOW_S, RetryBudget, RetryPolicy

STRICT = RetryPolicy(ratio=0.2, floor_per_s=0.0)


def seen(*, requests: int = 0, retries: int = 0, at: float = 100.0) -> RetryBudget:
    """Return a budget that saw so much at *at*."""
    budget = RetryBudget()
    for _ in range(requests):
        budget.request(at)
    for _ in range(retries):
        budget.retry(at)
    return budget


def test_a_fifth_of_the_requests_may_be_tried_again() -> None:
    assert seen(requests=10, retries=1).allows(100.0, STRICT)
    assert not seen(requests=10, retries=2).allows(100.0, STRICT)


def test_a_quiet_gateway_fails_over_freely() -> None:
    assert seen(requests=1, retries=99).allows(100.0, RetryPolicy())
    assert not seen(requests=1, retries=100).allows(100.0, RetryPolicy())


def test_what_is_ten_seconds_old_is_forgotten() -> None:
    spent = seen(requests=10, retries=2)
    assert not spent.allows(109.9, STRICT)
    spent.request(110.0)
    assert [(bucket.requests, bucket.retries) for bucket in spent.buckets] == [(1, 0)]


def test_a_ratio_of_zero_is_no_limit() -> None:
    assert seen(retries=5000).allows(100.0, RetryPolicy(ratio=0.0, floor_per_s=0.0))


def test_a_clock_that_goes_back_loses_nothing() -> None:
    budget = seen(requests=5)
    budget.request(90.0)
    assert [bucket.requests for bucket in budget.buckets] == [6]


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 5)), max_size=200))
def test_in_any_window_retries_stay_within_the_budget(steps: list[tuple[bool, float]]) -> None:
    policy, budget, now = RetryPolicy(ratio=0.2, floor_per_s=1.0), RetryBudget(), 1000.0
    for is_request, pause in steps:
        now += pause
        if is_request:
            budget.request(now)
        elif budget.allows(now, policy):
            budget.retry(now)
        retries = sum(bucket.retries for bucket in budget.buckets)
        peak = WINDOW_S + 0.2 * sum(1 for was_request, _ in steps if was_request)
        assert len(budget.buckets) <= WINDOW_S
        assert retries <= peak
