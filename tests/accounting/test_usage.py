"""Usage is read in every dialect, never added up, and never lost to a lesser report."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.accounting.usage import Usage, estimate, fuller, read_usage

COUNTS = ["prompt_tokens", "input_tokens", "completion_tokens", "total_tokens", "cached_tokens", "audio_tokens"]
DETAILS = ["prompt_tokens_details", "completion_tokens_details", "cache_read_input_tokens"]
NAMES = st.sampled_from(["usage", "x_groq", "choices", *COUNTS, *DETAILS])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=5))
USAGES = st.builds(Usage, *[st.integers(0, 9)] * 5, st.booleans())


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}, Usage(3, 2)),
        ({"prompt_tokens": 3, "completion_tokens": 0, "prompt_tokens_details": None}, Usage(3, 0)),
        ({"input_tokens": 3, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 1}}, Usage(3, 2, 1)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 8}}, Usage(9, 1, 8)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 8}, Usage(9, 1, 8)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "cache_read_input_tokens": 8}, Usage(9, 1, 8)),
        ({"prompt_tokens": 9, "cached_tokens": 8}, Usage(9, 0, 8)),
        ({"prompt_tokens": 9, "cached_tokens": 99}, Usage(9, 0, 9)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 0}, "cached_tokens": 8}, Usage(9, 0, 8)),
        ({"prompt_tokens": 3, "completion_tokens": 2, "reasoning_tokens": 1}, Usage(3, 2, reasoning=1)),
        ({"completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1}}, Usage(0, 2, reasoning=1)),
        ({"output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 1}}, Usage(0, 2, reasoning=1)),
        ({"prompt_tokens": 0, "input_tokens": 3}, Usage(0, 0)),
        ({"total_tokens": 5}, Usage(5, 0)),
        ({"completion_tokens": 2, "total_tokens": 5}, Usage(3, 2)),
        ({"completion_tokens": 0, "output_tokens": 2}, Usage(0, 2)),
        ({"prompt_tokens": 3.0, "completion_tokens": "2"}, Usage(3, 0)),
        ({"prompt_tokens": 3, "completion_tokens": -1}, Usage(3, 0)),
        ({"prompt_tokens": 3, "completion_tokens": 10**13}, Usage(3, 0)),
    ],
)
def test_a_report_is_read_in_every_spelling(usage: object, expected: Usage) -> None:
    assert read_usage({"usage": usage}) == expected


def test_what_anthropic_leaves_out_of_the_input_is_put_back() -> None:
    usage = {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}
    assert read_usage({"usage": usage}) == Usage(125, 2, 100)


def test_audio_is_counted_on_both_sides() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 8,
        "prompt_tokens_details": {"audio_tokens": 4},
        "completion_tokens_details": {"audio_tokens": 3},
    }
    assert read_usage({"usage": usage}) == Usage(9, 8, audio=7)


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        [],
        "5",
        {"prompt_tokens_details": {"cached_tokens": 0}},
        {"prompt_tokens": None, "completion_tokens": "2"},
        {"prompt_tokens": True},
        {"prompt_tokens": 1.5},
        {"prompt_tokens": float("inf"), "completion_tokens": float("nan")},
    ],
)
def test_an_object_without_counts_is_no_report(usage: object) -> None:
    assert read_usage({"usage": usage}) is None


def test_a_report_is_found_in_the_place_groq_puts_it() -> None:
    assert read_usage({"choices": [], "x_groq": {"usage": {"prompt_tokens": 3}}}) == Usage(3)


def test_a_report_is_found_inside_a_choice() -> None:
    assert read_usage({"choices": [None, {"usage": {"prompt_tokens": 3}}], "usage": None}) == Usage(3)


@pytest.mark.parametrize("value", [None, [], "usage", 5])
def test_a_body_that_is_no_object_reports_nothing(value: object) -> None:
    assert read_usage(value) is None


@given(JSON)
def test_no_shape_of_json_raises(value: object) -> None:
    usage = read_usage(value)
    assert usage is None or 0 <= usage.cached <= usage.input <= 10**12 * 3


def test_running_totals_are_not_added_up() -> None:
    reports = [Usage(10, 1), Usage(10, 2), None, Usage(10, 2, 8)]
    known: Usage | None = None
    for report in reports:
        known = fuller(known, report)
    assert known == Usage(10, 2, 8)


@pytest.mark.parametrize("lesser", [None, Usage(), Usage(3), Usage(estimated=True), Usage(9, 9, estimated=True)])
def test_a_lesser_report_takes_nothing_away(lesser: Usage | None) -> None:
    assert fuller(Usage(3, 2, 1), lesser) == Usage(3, 2, 1)


def test_a_report_replaces_an_estimate_whole() -> None:
    assert fuller(Usage(100, 100, estimated=True), Usage(3)) == Usage(3)


def test_nothing_and_nothing_is_nothing() -> None:
    assert fuller(None, None) is None


@given(USAGES)
def test_the_same_report_again_changes_nothing(usage: Usage) -> None:
    assert fuller(usage, usage) == usage


@given(USAGES, USAGES)
def test_no_number_ever_exceeds_what_was_reported(old: Usage, new: Usage) -> None:
    known = fuller(old, new) or Usage()
    assert known.input in {old.input, new.input}
    assert known.output in {old.output, new.output}


def test_an_estimate_says_so() -> None:
    assert estimate(7, 9) == Usage(7, 3, estimated=True)


def test_an_estimate_is_never_negative() -> None:
    assert estimate(-1, -1) == Usage(estimated=True)


def test_the_total_is_input_and_output() -> None:
    assert Usage(3, 2, cached=1, reasoning=1).total == 5
