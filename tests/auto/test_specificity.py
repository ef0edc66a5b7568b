"""Specificity: each part by itself, its bound, and the whole within 0 and 100."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.auto.brief import Brief
from troyproxy.auto.specificity import specificity


def test_a_greeting_is_not_specific() -> None:
    assert specificity(Brief(last="Hi there", messages=1)) == 0


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("```\nx\n```", 5),
        ("call `foo` and `bar`", 1),
        ("def f(x)", 2),
        ("```\nx\n```" * 9, 25),
        ("prove it", 4),
        ("theorem lemma proof integral derivative matrix", 20),
        ("because it is so", 2),
        ("1. this\n2. that", 4),
        ("because " * 30, 20),
        ("our kubernetes cluster", 2),
        ("kernel mutex tcp tls oauth gdpr", 10),
    ],
)
def test_each_sign_gives_its_points_up_to_its_bound(text: str, points: float) -> None:
    assert specificity(Brief(last=text)) == pytest.approx(points)


@pytest.mark.parametrize(
    ("tokens", "points"),
    [(1000, 0), (1001, 2), (4001, 4), (8001, 6), (16_001, 9), (32_001, 12), (64_001, 15), (10**9, 15)],
)
def test_context_counts_in_steps(tokens: int, points: int) -> None:
    assert specificity(Brief(est_tokens=tokens)) == points


@pytest.mark.parametrize(("tools", "points"), [(0, 0), (1, 2), (2, 2), (3, 4), (6, 6), (11, 8), (21, 10), (999, 10)])
def test_tools_count_in_steps(tools: int, points: int) -> None:
    assert specificity(Brief(tool_count=tools)) == points


@pytest.mark.parametrize(("messages", "points"), [(1, 0), (2, 1), (9, 4), (10, 5), (99, 5)])
def test_a_long_conversation_reasons_a_little(messages: int, points: int) -> None:
    assert specificity(Brief(messages=messages)) == points


@given(
    st.text(max_size=3000), st.text(max_size=300), st.integers(0, 10**7), st.integers(0, 500), st.integers(0, 10_000)
)
def test_it_lies_within_zero_and_a_hundred(last: str, system: str, tokens: int, tools: int, messages: int) -> None:
    brief = Brief(system=system, last=last, messages=messages, tool_count=tools, est_tokens=tokens)
    assert 0 <= specificity(brief) <= 100
