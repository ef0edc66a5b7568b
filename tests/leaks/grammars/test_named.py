from __future__ import annotations

import pytest

from tests.leaks.reads import arguments, is_no_call, is_unfinished
from troyproxy.leaks.calls import read_calls

SEP = "<|tool_sep|>"
DEEP = "<|tool_calls_begin|><|tool_call_begin|>"


@pytest.mark.parametrize(
    "text",
    [
        *(
            'f{"a": 1}',
            'f {"a": 1}',
            'f\n{"a": 1}',
            'f: {"a": 1}',
            'f\n```json\n{"a": 1}\n```',
            'functionf\n```json\n{"a": 1}\n```',
        ),
        *('[TOOL_CALLS]f{"a": 1}', '[TOOL_CALLS]f[ARGS]{"a": 1}', '[TOOL_CALLS]f[CALL_ID]x9[ARGS]{"a": 1}'),
        *(
            f'{DEEP}f{SEP}{{"a": 1}}',
            f'{DEEP}function{SEP}f\n```json\n{{"a": 1}}\n```',
            f'{DEEP}function{SEP}f\n{{"a": 1}}',
        ),
        *(
            'functions.f:0{"a": 1}',
            'functions.f:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>',
            '>>>f\n{"a": 1}',
        ),
        f'{DEEP}function{SEP}<steptml:invoke name="f">{{"a": 1}}</steptml:invoke>',
    ],
)
def test_every_header_is_read(text: str) -> None:
    assert arguments(text) == {"a": 1}


def test_a_tool_may_be_called_function() -> None:
    (call,) = read_calls(f"{DEEP}function{SEP}{{}}", frozenset({"function"})).calls
    assert call.name == "function"


@pytest.mark.parametrize(
    "text", ["f[1]", "f text {}", "f:", "f\n\ntext", "f{x}", "g{}", "function{}", f"{DEEP}function{SEP}f x", "-f{}"]
)
def test_other_text_is_no_call(text: str) -> None:
    assert is_no_call(text) is (text != "f:")


@pytest.mark.parametrize(
    "text",
    [
        "f",
        "f\n",
        "f\n``",
        'f{"a',
        "f[",
        "f[CALL_ID]x",
        "functions.f:0<|tool_call_arg",
        f"{DEEP}function{SEP}",
        f"{DEEP}function{SEP}<ste",
        f"{DEEP}function{SEP}f",
        "functi",
        "FUNCTIONf",
        "functions.dim",
    ],
)
def test_a_beginning_is_unfinished(text: str) -> None:
    assert is_unfinished(text)
