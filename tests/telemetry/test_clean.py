"""Nothing that looks like a credential is written, and a text stays on its line."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.telemetry.clean import clean, mask_keys, masked, one_line, writable

KEY = "0123456789abcdef0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: sk-troy-{KEY}.",
        f"Authorization: Bearer {KEY}",
        f"authorization=bearer  {KEY}",
        f'{{"api_key": "{KEY}"}}',
        f"x-api-key: {KEY}",
        f"GET /v1/models?key={KEY}&alt=sse",
        f"gsk_{KEY} xai-{KEY} AIza{KEY}",
        f"https://user:{KEY}@example.org/",
        f"token={KEY}",
    ],
)
def test_a_credential_is_masked(text: str) -> None:
    shown = mask_keys(text)
    assert KEY not in shown
    assert "***" in shown


@pytest.mark.parametrize(
    "text",
    ["max_tokens: 4096", "task-oriented-dialogue-model", "skip alpha/m1#A: cooldown", "deepseek/deepseek-r1 at 0.5 s"],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert mask_keys(text) == text


def test_a_cut_does_not_leave_half_a_key() -> None:
    assert masked("a" * 10 + f" sk-{KEY}", limit=17) == "a" * 10 + " ***"


def test_a_long_text_is_cut() -> None:
    assert masked("word " * 100, limit=9) == "word word…"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nb", "a\\r\\nb"),
        ("\x1b[31mred\x07\x7f\x9b", "\\x1b[31mred\\x07\\x7f\\x9b"),
        ("a\u2028b\u202ec", "a\\u2028b\\u202ec"),
        ("half \ud800", "half \\ud800"),
        ("grün", "grün"),
    ],
)
def test_what_does_not_print_is_escaped(text: str, shown: str) -> None:
    assert one_line(text) == shown


@given(st.text(alphabet=st.characters()))
def test_a_clean_text_always_prints(text: str) -> None:
    assert clean(text, limit=50).isprintable()


def test_a_mask_of_the_caller_is_used() -> None:
    assert clean("hunter2", limit=50, mask=lambda text: text.replace("hunter2", "***")) == "***"


def test_what_the_stream_cannot_encode_is_escaped() -> None:
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    assert (writable("ü→", narrow), writable("ü→", io.StringIO())) == ("ü\\u2192", "ü→")
