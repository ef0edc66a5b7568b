"""Token buckets over any sequence of requests."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.accounting.limits import NEARLY, Account, Limits, admit, brought_to, settled, spoken, wait_s
from troyproxy.resilience.hints import retry_hint

NOW = 1_800_000_000.0
STEPS = st.lists(st.tuples(st.floats(0, 90), st.integers(0, 400)), min_size=1, max_size=60)
RATES = st.builds(
    Limits,
    requests=st.none() | st.floats(1, 120),
    tokens=st.none() | st.floats(1, 1000),
)


def play(limits: Limits, steps: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return (at, tokens) of what was admitted."""
    account, now, admitted = Account(at=NOW), NOW, []
    for wait, tokens in steps:
        now += wait
        account, refused = admit(account, limits, now, tokens)
        if refused is None:
            admitted.append((now, tokens))
    return admitted


@given(RATES, STEPS)
def test_no_window_ever_sees_more_than_its_refill_and_a_full_bucket(
    limits: Limits, steps: list[tuple[float, int]]
) -> None:
    admitted = play(limits, steps)
    for start in range(len(admitted)):
        for end in range(start, len(admitted)):
            window = admitted[start : end + 1]
            minutes = (window[-1][0] - window[0][0]) / 60
            if limits.requests is not None:
                assert len(window) <= limits.requests * (minutes + 1) + 1e-3
            if limits.tokens is not None:
                last = max(0.0, window[-1][1] - limits.tokens)  # only the last may reach beyond the bucket
                assert sum(tokens for _, tokens in window) <= limits.tokens * (minutes + 1) + last + 1e-3


@given(RATES, STEPS)
def test_who_waits_as_long_as_told_is_admitted(limits: Limits, steps: list[tuple[float, int]]) -> None:
    account, now = Account(at=NOW), NOW
    for _, tokens in steps:
        account, refused = admit(account, limits, now, tokens)
        if refused is not None:
            now += math.ceil(wait_s(account, limits, refused, tokens) * 1000 + 1) / 1000  # told in whole seconds
            account, refused = admit(account, limits, now, tokens)
        assert refused is None


@given(RATES, STEPS, st.integers(-1000, 1000))
def test_levels_never_exceed_the_limit(limits: Limits, steps: list[tuple[float, int]], back: int) -> None:
    account, now = Account(at=NOW), NOW
    for wait, tokens in steps:
        now += wait
        account, _ = admit(account, limits, now, tokens)
        account = settled(account, limits, tokens=back, day_usd=0, month_usd=0)
        assert limits.tokens is None or account.tokens <= limits.tokens
        assert limits.requests is None or -NEARLY <= account.requests <= limits.requests


@given(STEPS)
def test_a_charge_that_comes_back_whole_at_once_was_none(steps: list[tuple[float, int]]) -> None:
    limits, now = Limits(tokens=300), NOW
    account = Account(at=NOW)
    for wait, tokens in steps:
        now += wait
        before = brought_to(account, limits, now)
        account, refused = admit(before, limits, now, tokens)
        if refused is None:
            account = settled(account, limits, tokens=tokens, day_usd=0, month_usd=0)
        assert account.tokens == pytest.approx(before.tokens)


@given(st.floats(0, 10**6))
def test_a_reset_is_read_as_what_it_means(seconds: float) -> None:
    told = [(b"x-ratelimit-remaining-tokens", b"0"), (b"x-ratelimit-reset-tokens", spoken(seconds).encode())]
    read = retry_hint(told, None, "", now=NOW, cap_s=1e9)
    assert read == pytest.approx(max(1.0, seconds), abs=1.0)
