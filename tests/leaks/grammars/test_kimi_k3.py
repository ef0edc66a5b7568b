from __future__ import annotations

import pytest

from tests.leaks.reads import arguments, is_no_call, is_unfinished

ARGUMENT = '<|open|>argument key="{}" type="{}"<|sep|>{}<|close|>argument<|sep|>'
CALL = '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>{}<|close|>call<|sep|><|close|>tools<|sep|>'


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "3", "3"),
        ("string", '"x" & <b>', '"x" & <b>'),
        ("number", "3", 3),
        ("object", '{"b": [1]}', {"b": [1]}),
    ],
)
def test_the_type_says_how_a_value_is_written(kind: str, text: str, value: object) -> None:
    assert arguments(CALL.format(ARGUMENT.format("a", kind, text))) == {"a": value}


def test_attributes_are_unescaped() -> None:
    assert arguments(CALL.format(ARGUMENT.format("a&quot;&amp;quot;", "number", "1"))) == {'a"&quot;': 1}


def test_a_call_without_arguments_is_an_empty_object() -> None:
    assert arguments(CALL.format("\n")) == {}


@pytest.mark.parametrize(
    "argument", [ARGUMENT.format("a", "number", "x"), "text", "<|open|>other<|sep|>", "<|open|>argument<|sep|>"]
)
def test_anything_else_inside_is_no_call(argument: str) -> None:
    assert is_no_call(CALL.format(argument))


def test_every_beginning_is_unfinished() -> None:
    text = CALL.format(ARGUMENT.format("a", "number", "1"))
    for cut in range(1, text.index("<|close|>call")):
        assert is_unfinished(text[:cut]), text[:cut]
