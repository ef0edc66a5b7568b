from __future__ import annotations

import pytest

from tests.leaks.reads import arguments, calls, is_no_call, is_unfinished, read
from troyproxy.leaks.grammars.object_notation import MAX_DEPTH


@pytest.mark.parametrize(
    ("inside", "value"),
    [
        *(
            ('<|"|>x, }y<|"|>', "x, }y"),
            ("<escape>x: {<escape>", "x: {"),
            ("3", 3),
            ("-2.5", -2.5),
            ("true", True),
            ("null", None),
        ),
        *(
            ("hall", "hall"),
            ("two words", "two words"),
            ("0042", "0042"),
            ('"a, \\"b"', 'a, "b'),
            ("[1,2]", [1, 2]),
            ("[]", []),
        ),
        *(
            (' [ <|"|>a<|"|> , {b:1} ] ', ["a", {"b": 1}]),
            ("{b:{c:1}}", {"b": {"c": 1}}),
            ("{}", {}),
            ("http://x", "http://x"),
        ),
    ],
)
def test_a_value_is_read(inside: str, value: object) -> None:
    assert arguments(f"call:f{{a:{inside}}}") == {"a": value}


def test_keys_may_be_quoted_and_spaced() -> None:
    assert arguments('<|tool_call>call:f { "a" : 1 , b-c : 2 }<tool_call|>') == {"a": 1, "b-c": 2}


def test_the_first_of_doubled_keys_wins() -> None:
    assert arguments("call:f{a:1,a:2}") == {"a": 1}


def test_only_escaped_text_is_untyped() -> None:
    escaped = "<start_function_call>call:f{a:<escape>3<escape>}<end_function_call>"
    assert (read(escaped).calls[0].typed, read("call:f{a:3}").calls[0].typed) == (False, True)


def test_several_calls_are_read_in_order() -> None:
    assert calls("<|tool_call>call:f{}<tool_call|><|tool_call>call:f{a:1}<tool_call|>") == [("f", {}), ("f", {"a": 1})]


@pytest.mark.parametrize(
    "inside",
    ["a", "a:,b:1", "1", "a:1>", "a:<b>", 'a:"\\x"', "a:x, y", "a:[1}", "[1]", "a:" + "[" * MAX_DEPTH + "1", "a: }"],
)
def test_anything_else_is_no_call(inside: str) -> None:
    assert is_no_call(f"<|tool_call>call:f{{{inside}}}")


def test_every_beginning_is_unfinished() -> None:
    text = '<|tool_call>call:f{a:<|"|>x<|"|>,b:[1,{c:true}],d:"e\\"",f:no}<tool_call|>'
    for cut in range(1, text.index("}<tool")):
        assert is_unfinished(text[:cut]), text[:cut]
