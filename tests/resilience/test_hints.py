"""Retry hints: every form, their order, and that nothing makes the reader raise."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.resilience.hints import retry_hint, seconds_from

NOW = datetime(2026, 10, 21, 7, 26, tzinfo=UTC).timestamp()
CAP_S = 1800.0
JSON = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "details", "retryDelay", "seconds", "retry_after", "retry_after_ms", "headers", "code"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


def hint(*, body: object | None = None, text: str = "", **headers: str) -> float | None:
    """Return the hint of an answer; header names are written with underscores."""
    raw = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return retry_hint(raw, body, text, now=NOW, cap_s=CAP_S)


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("30", 30.0),
        ("1.5", 1.5),
        (".5", 1.0),
        ("0", 1.0),
        ("0.2", 1.0),
        ("604800", CAP_S),
        ("99999999999999999999", CAP_S),
        ("9" * 120, CAP_S),
        ("9" * 400, CAP_S),
        ("1m30s", 90.0),
        (str(int(NOW) + 90), 90.0),
        (str((int(NOW) + 90) * 1000), 90.0),
        (str(int(NOW) - 90), 1.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 120.0),
        ("Wed, 21 Oct 2026 07:28:00 -0000", 120.0),
        ("Wed Oct 21 07:28:00 2026", 120.0),
        ("Wednesday, 21-Oct-26 07:28:00 GMT", 120.0),
        ("Wed, 21 Oct 2026 09:28:00 +0200", 120.0),
        ("2026-10-21T07:27:30Z", 90.0),
        ("2026-10-21T07:27:30", 90.0),
        ("Wed, 21 Oct 2020 07:28:00 GMT", 1.0),
        ("Wed, 21 Oct 99999 07:28:00 GMT", None),
        ("Wed, 21 Oct 2026 07:28:00 +9999", None),
        ("nan", None),
        ("inf", None),
        ("-5", None),
        ("1e3", None),
        ("1_000", None),
        ("\u00b2", None),
        ("-", None),
        ("", None),
        ("soon", None),
    ],
)
def test_retry_after_is_read_in_every_form(value: str, wait_s: float | None) -> None:
    assert hint(Retry_After=value) == wait_s


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_the_zone_of_the_process_does_not_matter(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        found = [hint(retry_after=form) for form in ("Wed Oct 21 07:28:00 2026", "2026-10-21T07:28:00")]
    time.tzset()
    assert found == [120.0, 120.0]


@pytest.mark.parametrize(("value", "wait_s"), [("1500", 1.5), ("250", 1.0), ("x", 2.0)])
def test_milliseconds_come_before_seconds(value: str, wait_s: float) -> None:
    assert hint(retry_after="2", Retry_After_MS=value) == wait_s


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("1m30s", 90.0),
        ("6m0s", 360.0),
        ("120ms", 1.0),
        ("5000ms", 5.0),
        ("3000000us", 3.0),
        ("4000000000ns", 4.0),
        ("2.25s", 2.25),
        ("0h29m3.5s", 1743.5),
        ("90", 90.0),
        ("2026-10-21T07:27:30Z", 90.0),
        ("", None),
        ("-", None),
        ("1m30", None),
    ],
)
def test_the_reset_of_an_exhausted_bucket_is_read(value: str, wait_s: float | None) -> None:
    found = hint(
        x_ratelimit_remaining_requests="0",
        x_ratelimit_reset_requests=value,
        x_ratelimit_remaining_tokens="500",
        x_ratelimit_reset_tokens="25m0s",
    )
    assert found == wait_s


def test_of_two_exhausted_buckets_the_later_reset_counts() -> None:
    found = hint(
        x_ratelimit_remaining_requests="0",
        x_ratelimit_reset_requests="10s",
        x_ratelimit_remaining_tokens="0",
        x_ratelimit_reset_tokens="20s",
    )
    assert found == 20.0


@pytest.mark.parametrize("name", ["x-ratelimit-reset", "ratelimit-reset", "anthropic-ratelimit-unified-reset"])
def test_a_reset_without_a_remaining_counts(name: str) -> None:
    assert retry_hint([(name.encode(), b"45")], None, "", now=NOW, cap_s=CAP_S) == 45.0


def test_a_reset_with_something_remaining_does_not_count() -> None:
    assert hint(x_ratelimit_reset="45", x_ratelimit_remaining="3") is None


def test_an_unreadable_reset_without_a_remaining_is_passed_over() -> None:
    assert hint(x_ratelimit_reset="-", anthropic_ratelimit_requests_reset="2026-10-21T07:26:30Z") == 30.0


def test_of_anthropics_resets_the_exhausted_one_counts() -> None:
    found = hint(
        anthropic_ratelimit_requests_reset="2026-10-21T07:26:10Z",
        anthropic_ratelimit_requests_remaining="40",
        anthropic_ratelimit_tokens_reset="2026-10-21T07:26:30Z",
        anthropic_ratelimit_tokens_remaining="0",
    )
    assert found == 30.0


def test_of_resets_that_nobody_knows_to_be_exhausted_the_soonest_counts() -> None:
    assert hint(anthropic_ratelimit_unified_5h_reset="60", anthropic_ratelimit_unified_7d_reset="900") == 60.0


def test_buckets_can_be_left_out() -> None:
    assert retry_hint([(b"x-ratelimit-reset", b"45")], None, "", now=NOW, cap_s=CAP_S, buckets=False) is None


@pytest.mark.parametrize(
    ("body", "wait_s"),
    [
        ({"error": {"details": [{"@type": "RetryInfo", "retryDelay": "41.5s"}]}}, 41.5),
        ([{"error": {"details": [{"retryDelay": "41.5s"}]}}], 41.5),
        ({"error": {"details": [{"retryDelay": {"seconds": "41"}}]}}, 41.0),
        ({"error": {"details": [{"retryDelay": "?"}, {"retryDelay": "7s"}]}}, 7.0),
        ({"error": {"details": [{"retryDelay": "?"}]}}, None),
        ({"error": {"type": "usage_limit_reached", "resets_in_seconds": 77}}, 77.0),
        ({"error": {"resets_at": NOW + 77}}, 77.0),
        ({"error": {"retry_after_ms": 5000, "retry_after": 9}}, 5.0),
        ({"error": {"retry_after_ms": "5000"}}, 5.0),
        ({"retry_after": "9"}, 9.0),
        ({"retry_after": True}, None),
        ({"retry_after": []}, None),
        ({"retry_after": 10**400}, None),
        ({"retry_after": float("nan")}, None),
        (
            {
                "error": {
                    "metadata": {
                        "headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW + 8) * 1000)}
                    }
                }
            },
            8.0,
        ),
        ({"error": {"metadata": {"headers": "none"}}}, None),
        ("a bare string", None),
        (None, None),
    ],
)
def test_bodies_carry_hints_too(body: object, wait_s: float | None) -> None:
    assert hint(body=body) == wait_s


@pytest.mark.parametrize(
    ("code", "text", "wait_s"),
    [
        ("1308", "will reset at 2026-10-21 15:36:00", 600.0),
        (1310, "will reset at 2026-10-21 15:36:00", 600.0),
        ("1302", "will reset at 2026-10-21 15:36:00", None),
        ("1308", "will reset at 2026-10-21 07:36:00", None),
        ("1308", "will reset at 2026-99-21 07:36:00", None),
        ("1308", "will reset some day", None),
    ],
)
def test_zai_names_its_reset_in_beijing_time(code: object, text: str, wait_s: float | None) -> None:
    assert hint(body={"error": {"code": code, "message": text}}, text=text) == wait_s


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [
        ("Please try again in 6.2s.", 6.2),
        ("Please try again in 7m12.5s. Visit", 432.5),
        ("Please try again in 120ms", 1.0),
        ("Please retry in 41.622s.", 41.622),
        ("retry after 20 seconds", 20.0),
        ("limit reached, resets after 26h10m5s", CAP_S),
        ("Wait 5 minutes and 10 seconds", 310.0),
        ("available again in 2 mins", 120.0),
        ("try again in about 1 hour", CAP_S),
        ("try again in 2 milliseconds", 1.0),
        ("try again in 20000000 microseconds", 20.0),
        ("retry in 3 models", None),
        ("retry after 20", None),
        ("try again in a moment; retry in 2s", 2.0),
        ("try again in 3s\u017f", 3.0),
        ("try again in 3\u017f", None),
        ("try again in " + "9" * 400 + "s", None),
    ],
)
def test_text_is_the_last_resort(text: str, wait_s: float | None) -> None:
    assert hint(text=text) == wait_s


def test_the_order_of_sources_is_kept() -> None:
    body = {"error": {"details": [{"retryDelay": "13s"}], "retry_after": 14}}
    text = "try again in 16s"
    found = [
        hint(body=body, text=text, retry_after_ms="11000", retry_after="12", x_ratelimit_reset="15"),
        hint(body=body, text=text, retry_after="12", x_ratelimit_reset="15"),
        hint(body=body, text=text, x_ratelimit_reset="15"),
        hint(body={"retry_after": 14}, text=text, x_ratelimit_reset="15"),
        hint(text=text, x_ratelimit_reset="15"),
        hint(text=text),
    ]
    assert found == [11.0, 12.0, 13.0, 14.0, 15.0, 16.0]


def test_the_first_of_two_equal_headers_counts() -> None:
    assert retry_hint([(b"retry-after", b"3"), (b"Retry-After", b"9")], None, "", now=NOW, cap_s=CAP_S) == 3.0


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        (1e9 - 1, 1e9 - 1),
        (1e9, 0.0),
        (NOW + 5, 5.0),
        ((NOW + 5) * 1000, 5.0),
        (math.inf, None),
        (math.nan, None),
        (-1.0, None),
    ],
)
def test_a_number_is_a_duration_or_an_epoch_by_its_size(value: float, wait_s: float | None) -> None:
    assert seconds_from(value, NOW) == wait_s


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"Retry-After", b"retry-after-ms", b"x-ratelimit-reset", b"x-ratelimit-remaining"])
            | st.binary(max_size=20),
            st.binary(max_size=30) | st.from_regex(r"[0-9:., a-zA-Z+-]{1,30}", fullmatch=True).map(str.encode),
        ),
        max_size=5,
    ),
    JSON,
    st.text(max_size=60).map(lambda tail: "try again in " + tail),
)
def test_whatever_comes_a_hint_is_none_or_between_its_bounds(
    headers: list[tuple[bytes, bytes]], body: object, text: str
) -> None:
    found = retry_hint(headers, body, text, now=NOW, cap_s=CAP_S)
    assert found is None or 1.0 <= found <= CAP_S
