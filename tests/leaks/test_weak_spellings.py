"""Spellings of weaker models: a round bracket in place of an angle one, and tags with attributes or a blank.

The corpus has them as examples (F01d and on, F03b and on), and they are cut at every place with the others.
"""

from __future__ import annotations

import pytest

from tests.leaks.scanning import GENERIC, leak
from troyproxy.leaks.calls import read_calls

NAMES = frozenset({"dim_lamp", "open"})
BRACKETED = '(function=dim_lamp>{"id": 3}</function>)'
TAGGED = '<tool_call id="1">{"name": "dim_lamp", "arguments": {"id": 3}}</tool_call>'


@pytest.mark.parametrize("call", [BRACKETED, TAGGED, TAGGED.replace(' id="1"', " ")])
def test_behind_prose_they_are_leaks_where_they_end_the_text_and_quotations_where_words_follow(call: str) -> None:
    assert leak(f"I dim it.\n{call}") in {"F01", "F03"}
    assert leak(f"I dim it.\n{call}\n") in {"F01", "F03"}
    assert leak(f"The log shows {call} in line 3.") is None
    assert leak(f"The log shows `{call}`") is None


@pytest.mark.parametrize("call", [BRACKETED, TAGGED])
def test_a_tool_that_is_not_offered_is_none_of_ours(call: str) -> None:
    assert leak(call.replace("dim_lamp", "other")) is None


@pytest.mark.parametrize(
    "text",
    [
        "(function=open)",
        "(function=open, times=3)",
        "(function=open(3)>2)",
        "(function=open/>",
        "(function =open>{}",
        "(function",
        "(",
        '<tool_call id="1">open the door</tool_call>',
        "<tool_call id=1>",
        "<tool_call open{",
    ],
)
def test_code_and_words_that_begin_alike_are_text(text: str) -> None:
    assert leak(text, GENERIC) is None


def test_a_bracketed_call_is_closed_by_its_bracket_or_by_its_element() -> None:
    closed = [BRACKETED, '(function=dim_lamp>{"id": 3})', '(function=dim_lamp>{"id": 3}</function>']
    assert [read_calls(text, NAMES).closed for text in closed] == [True, True, True]
    assert not read_calls('(function=dim_lamp>{"id": 3}', NAMES).closed
    assert [read_calls(text, NAMES).end for text in closed] == [len(text) for text in closed]


def test_a_bracketed_name_without_its_angle_bracket_is_no_call() -> None:
    assert read_calls('(function=dim_lamp {"id": 3})', NAMES).calls == ()


def test_a_bracket_alone_behind_a_call_does_not_make_it_unfinished() -> None:
    assert read_calls('<function=dim_lamp>{"id": 3}</function> (', NAMES).complete
    assert read_calls('<function=dim_lamp>{"id": 3}</function> (fun', NAMES).dangling
