"""Sizes of values that come again are counted once, and are the same."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.routing.needs import Sizes, needs_of, text_bytes

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)


@given(st.lists(JSON, max_size=4))
def test_a_size_that_is_kept_is_the_size_that_was_counted(values: list[object]) -> None:
    sizes = Sizes()
    assert [sizes.of(value) for value in values * 2] == [text_bytes(value) for value in values * 2]


@pytest.mark.parametrize("value", [[math.nan, None], ["\ud800"], [10**40], [["a"] * 70_000]])
def test_a_value_that_is_not_kept_is_counted_each_time(value: list[object]) -> None:
    sizes = Sizes()
    assert sizes.of(value) == sizes.of(value) == text_bytes(value)
    assert sizes.of([None, None]) == 0


def test_sizes_are_kept_of_so_many_at_most() -> None:
    sizes = Sizes()
    assert [sizes.of([str(number)]) for number in [*range(100, 300), 100, 299]] == [3] * 202


def test_json_deeper_than_the_stack_has_a_size() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    assert Sizes().of([value, "abc"]) == 3
    while value:  # taken apart gently
        value = value.pop()  # type: ignore[assignment]


def test_needs_are_the_same_whoever_counts_the_tools() -> None:
    body = {"tools": [{"function": {"name": "a", "n": 1}}], "functions": [], "prompt": "x"}
    assert needs_of(body, Sizes().of) == needs_of(body)
