"""Rate-limit headers of every vendor as signals of what is left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.resilience.signals import Signal, read_signals, told_of

NOW = 1_700_000_000.0


def signals(**headers: str) -> dict[str, Signal]:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {signal.bucket: signal for signal in read_signals(raw, NOW)}


def test_openai_and_groq_tell_requests_and_tokens_with_durations() -> None:
    found = signals(
        x_ratelimit_limit_requests="60",
        x_ratelimit_remaining_requests="45",
        x_ratelimit_reset_requests="1s",
        x_ratelimit_limit_tokens="150000",
        x_ratelimit_remaining_tokens="0",
        x_ratelimit_reset_tokens="6m0s",
    )
    assert (found["requests"].remaining, found["requests"].reset_at) == (0.75, NOW + 1)
    assert (found["tokens"].remaining, found["tokens"].reset_at) == (0.0, NOW + 360)


def test_anthropic_puts_the_bucket_in_front_and_the_moment_as_a_date() -> None:
    found = signals(
        anthropic_ratelimit_input_tokens_limit="1000",
        anthropic_ratelimit_input_tokens_remaining="100",
        anthropic_ratelimit_input_tokens_reset="2023-11-14T22:14:20Z",
    )
    assert found["input-tokens"] == Signal("input-tokens", 0.1, NOW + 60, None, NOW)


def test_anthropic_subscriptions_tell_how_much_is_used_and_their_windows() -> None:
    found = signals(
        anthropic_ratelimit_unified_5h_utilization="0.25",
        anthropic_ratelimit_unified_5h_reset=str(int(NOW) + 900),
        anthropic_ratelimit_unified_7d_utilization="0.5",
    )
    assert found["unified-5h"] == Signal("unified-5h", 0.75, NOW + 900, 18_000.0, NOW)
    assert (found["unified-7d"].remaining, found["unified-7d"].length_s) == (0.5, 604_800.0)


def test_cerebras_names_the_window_in_the_bucket() -> None:
    found = signals(
        x_ratelimit_limit_requests_day="1000",
        x_ratelimit_remaining_requests_day="10",
        x_ratelimit_reset_requests_day="33011.382867",
    )
    assert (found["requests-day"].remaining, found["requests-day"].length_s) == (0.01, 86_400.0)


def test_codex_tells_percent_used_and_the_length_in_minutes() -> None:
    found = signals(
        x_codex_primary_used_percent="40",
        x_codex_primary_window_minutes="300",
        x_codex_primary_reset_after_seconds="60",
    )
    assert found["primary"] == Signal("primary", 0.6, NOW + 60, 18_000.0, NOW)


def test_openrouter_and_the_draft_standard_name_no_bucket() -> None:
    openrouter = signals(
        x_ratelimit_limit="20", x_ratelimit_remaining="5", x_ratelimit_reset=str(int(NOW * 1000) + 9000)
    )
    standard = signals(ratelimit_limit="20", ratelimit_remaining="5", ratelimit_reset="9")
    assert openrouter["requests"] == standard["requests"] == Signal("requests", 0.25, NOW + 9, None, NOW)


def test_nothing_left_is_a_signal_without_a_limit_too() -> None:
    assert signals(x_ratelimit_remaining_requests="0")["requests"].remaining == 0.0


@pytest.mark.parametrize(
    "headers",
    [
        {"x_ratelimit_remaining_requests": "7"},
        {"x_ratelimit_limit_requests": "7"},
        {"x_ratelimit_limit_requests": "0", "x_ratelimit_remaining_requests": "7"},
        {"x_ratelimit_limit_requests": "many", "x_ratelimit_remaining_requests": "-1"},
        {"x_my_ratelimit_remaining": "0"},
        {"x_ratelimit_policy": "60;w=60"},
        {"x_codex_window": "1"},
    ],
)
def test_what_does_not_tell_how_much_is_left_is_no_signal(headers: dict[str, str]) -> None:
    assert signals(**headers) == {}


def test_only_the_first_headers_of_a_flood_are_read() -> None:
    raw = [(b"x-ratelimit-remaining-b%d" % at, b"0") for at in range(500)]
    assert len(read_signals(raw, NOW)) == 64


@given(
    st.lists(
        st.tuples(st.sampled_from([b"x-ratelimit-", b"anthropic-ratelimit-", b"x-codex-"]), st.binary(), st.binary())
    )
)
def test_no_header_raises_and_what_is_left_is_a_fraction(parts: list[tuple[bytes, bytes, bytes]]) -> None:
    for signal in read_signals([(family + name, value) for family, name, value in parts], NOW):
        assert 0 <= signal.remaining <= 1
        assert signal.reset_at is None or signal.reset_at >= NOW


def test_the_upstreams_own_numbers_are_kept_where_it_gave_them() -> None:
    found = signals(
        x_ratelimit_limit_requests="60",
        x_ratelimit_remaining_requests="45",
        anthropic_ratelimit_unified_5h_utilization="0.25",
    )
    assert (found["requests"].limit, found["requests"].left) == (60.0, 45.0)
    assert (found["unified-5h"].limit, found["unified-5h"].left) == (None, None)


@pytest.mark.parametrize(("left", "told"), [("5", {"requests": None}), ("soon", {}), ("", {})])
def test_something_that_is_left_of_nobody_knows_how_much_is_told_without_a_signal(
    left: str, told: dict[str, None]
) -> None:
    assert told_of([(b"x-ratelimit-remaining-requests", left.encode())], NOW) == told
