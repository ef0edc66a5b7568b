from __future__ import annotations

import pytest

from tests.leaks.reads import arguments, calls, is_no_call, is_unfinished, read

PAIR = "<arg_key>a</arg_key>\n<arg_value>{}</arg_value>\n"


@pytest.mark.parametrize(
    "value", ["1", "", "<b>", "&amp;", "</tool_call> inside", "</arg_value> inside", "<arg_key>x", "a\nb"]
)
def test_a_value_is_raw_and_is_not_cut_at_a_closer_inside_it(value: str) -> None:
    assert arguments(f"<tool_call>f\n{PAIR.format(value)}</tool_call>") == {"a": value}


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>",
        "<tool_call>f\n<arg_key> a </arg_key>\n<arg_value>\n1\n</arg_value>\n</tool_call>",
        "<tool_calls:x>\n<tool_call:x>f<tool_sep:x>\n<arg_key:x>a</arg_key:x>\n<arg_value:x>1</arg_value:x>\n</tool_call:x>",
        "<|tool_call:start|>f\n<|tool_arg:start|>a<|tool_arg:value|>1<|tool_arg:end|>\n<|tool_call:end|>",
        "<tool_call>f\n" + PAIR.format(1) + "<arg_key>a</arg_key>\n<arg_value>2</arg_value></tool_call>",
        "<tool_call>f\n" + PAIR.format(1) + "<|im_end|>",
    ],
)
def test_every_spelling_is_read(text: str) -> None:
    assert arguments(text) == {"a": "1"}


def test_values_are_untyped() -> None:
    (call,) = read(f"<tool_call>f\n{PAIR.format(3)}</tool_call>").calls
    assert not call.typed


def test_the_next_call_ends_one_without_a_closer() -> None:
    one = "<|tool_call:start|>f\n<|tool_arg:start|>a<|tool_arg:value|>1<|tool_arg:end|>\n"
    assert calls(one + one + "<|tool_call:end|>") == [("f", {"a": "1"})] * 2


@pytest.mark.parametrize(
    "cut", ["\n", "<arg_k", "<arg_key>", "<arg_key>a", "<arg_key>a</arg", "<arg_key>a</arg_key>", PAIR[:-14], PAIR]
)
def test_a_cut_one_is_unfinished(cut: str) -> None:
    assert is_unfinished("<tool_call>f\n" + cut)


@pytest.mark.parametrize(
    "inside", ["<arg_key>a</arg_key>1", "<arg_key>a<b>", "<arg_key>a</arg_key><arg_value>1</arg_value>x", PAIR + "x"]
)
def test_anything_else_between_is_no_call(inside: str) -> None:
    assert not read(f"<tool_call>f\n{inside}</tool_call>").complete


def test_text_between_key_and_value_is_no_call() -> None:
    assert is_no_call("<tool_call>f\n<arg_key>a</arg_key> is <arg_value>1</arg_value></tool_call>")


def test_text_behind_a_value_s_closer_means_that_the_value_goes_on() -> None:
    assert is_unfinished(f"<tool_call>f\n{PAIR.format(1)}and so on</tool_call>")
