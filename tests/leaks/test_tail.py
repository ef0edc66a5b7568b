from __future__ import annotations

import pytest

from troyproxy.leaks.formats import canonical
from troyproxy.leaks.tail import residue, tail_fits, without_stops


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "</tool_call>",
        "</tool_calls:own> </s>",
        "<|im_end|>\n",
        "<|im_",
        "<tool_call>",
        '<tool_call>{"name"',
        "<tool_response>\nanything",
        "<|message_sep|>",
        "</invoke></function_calls><",
    ],
)
def test_blanks_closers_stop_tokens_calls_and_invented_results_may_follow(text: str) -> None:
    assert tail_fits(text, canonical(text), 0)


@pytest.mark.parametrize("text", ["x", "</p>", "<tool_call> is a", "`", "</tool_call>, then", "<|im_x"])
def test_nothing_else_may(text: str) -> None:
    assert not tail_fits(text, canonical(text), 0)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("<tool_call>\n</tool_call>", "<tool_call>"),
        ("<function", "<function"),
        (" </Tool_Call> <tool_call \n", "</tool_call>"),
        ("<|tool_call|>", "<|tool_call|>"),
        ("<", None),
        ("  ", None),
        ("", None),
        ("<tool_call> hello", None),
        ('<tool_call id="1"></tool_call >', "<tool_call "),
        ('<tool_call id="1', "<tool_call "),
        ("<tool_call is a", None),
    ],
)
def test_residue_is_markers_and_blanks_and_nothing_else(text: str, first: str | None) -> None:
    row = residue(text)
    assert (row.text if row else None) == first


def test_stop_tokens_at_the_end_are_taken_off() -> None:
    assert without_stops("a <|IM_END|> </s>\n") == "a"
    assert without_stops("a <b>") == "a <b>"


@pytest.mark.parametrize(
    ("tail", "fits"), [('<tool_call id="1', True), ("<tool_call is a", False), ("</tool_call >", True)]
)
def test_a_tag_with_attributes_may_follow_a_call_as_one_without_may(tail: str, fits: bool) -> None:
    assert tail_fits(tail, canonical(tail), 0) is fits
