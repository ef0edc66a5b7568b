from __future__ import annotations

import pytest

from tests.leaks.reads import arguments, calls, is_no_call, is_unfinished, read


@pytest.mark.parametrize(
    "text",
    [
        *(
            "[f(a=1)]",
            "[ f (a=1) ]",
            "[tools.f(a=1)]",
            "<|python_start|>[f(a=1)]",
            "<|python_tag|>f.call(a=1)",
            "f.call(a=1)",
        ),
        *(
            "print(default_api.f(a=1))",
            "print( default_api.f(a=1) )",
            "python(default_api.f(a = 1))",
            "default_api.f(a=1)",
        ),
        *(
            "<tool_code>f(a=1)</tool_code>",
            "tool_code\nprint(default_api.f(a=1))",
            "<function_calls>\nf(a=1)\n</function_calls>",
        ),
        *("```tool_code\nprint(default_api.f(a=1))\n```", "```python\n[f(a=1)]\n```", "print(default_api.f(a=1)"),
    ],
)
def test_every_spelling_is_read(text: str) -> None:
    assert arguments(text) == {"a": 1}


def test_several_calls_are_read_in_order() -> None:
    assert calls("[f(a=1), dim_lamp(id=2)]") == [("f", {"a": 1}), ("dim_lamp", {"id": 2})]
    assert calls("print(default_api.f(a=1))\nprint(default_api.f(a=2))") == [("f", {"a": 1}), ("f", {"a": 2})]


@pytest.mark.parametrize(
    "text",
    [
        "[f(1)]",
        "[f(a=1) x]",
        "[f]",
        "[f(a=1), 3]",
        "[f(x) for x in y]",
        "f(a=1)",
        "print(f(a=1))",
        "print(default_api.f(a=1) x",
        "[g(a=1)]",
        "default_api.g(a=1)",
        "[fn",
        "[x",
    ],
)
def test_other_python_is_no_call(text: str) -> None:
    assert is_no_call(text)


@pytest.mark.parametrize(
    "text", ["[", "[f", "[functions.", "[f(", "[f(a=[1", "[dim_l", "print(def", "print(default_api.f(a=1"]
)
def test_a_beginning_is_unfinished(text: str) -> None:
    assert is_unfinished(text)


def test_the_whole_ones_of_a_cut_list_are_known() -> None:
    reading = read("[f(a=1), f(a=")
    assert (len(reading.calls), reading.dangling) == (1, True)
