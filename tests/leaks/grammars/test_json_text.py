from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.leaks.grammars.cursor import NotThis, TextEnded
from troyproxy.leaks.grammars.json_text import MAX_DEPTH, decoded, json_end, json_value_in


@pytest.mark.parametrize("text", ['{"a": "}"}', '{"a": "\\"}"}', '[[{"a": []}], "]"]', '{"a": "x\ny"}', '["\\\\"]'])
def test_the_end_is_found_behind_strings_and_nesting(text: str) -> None:
    assert json_end(text + "} trailing", 0) == len(text)


@pytest.mark.parametrize("text", ["{", '{"a', '{"a\\', '{"a\\"', '{"a": [', '["}', "{{}"])
def test_an_open_one_is_unfinished(text: str) -> None:
    with pytest.raises(TextEnded):
        json_end(text, 0)


@pytest.mark.parametrize("text", ["{]", "[}", "[[}]", "[" * (MAX_DEPTH + 1)])
def test_wrong_nesting_is_no_json(text: str) -> None:
    with pytest.raises(NotThis):
        json_end(text, 0)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "[1e400]", "9" * 5000])
def test_numbers_that_are_none_in_json_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^"):
        decoded(text)


def test_the_first_of_doubled_keys_wins() -> None:
    assert decoded('{"a": 1, "b": 2, "a": 3}') == {"a": 1, "b": 2}


def test_a_raw_newline_in_a_string_is_taken() -> None:
    assert decoded('{"a": "x\ny\tz"}') == {"a": "x\ny\tz"}


@pytest.mark.parametrize(
    ("text", "value"), [(' {"a": 1} ', {"a": 1}), ("[1]", [1]), ("{} {}", None), ("3", None), ("{", None)]
)
def test_only_one_object_or_array_is_a_value(text: str, value: object) -> None:
    assert json_value_in(text) == value


@given(st.text(alphabet='{}[]"\\,:a1 \n'))
def test_no_text_raises_anything_else(text: str) -> None:
    assert json_value_in("{" + text) is None or isinstance(json_value_in("{" + text), dict)
