from __future__ import annotations

import json
from itertools import product

import pytest

from tests.leaks.reads import arguments, calls, is_no_call, is_unfinished, read

MARK = "<tool_call>"


@pytest.mark.parametrize(
    ("name", "given"),
    [*product(["name", "tool_name", "function", "tool"], ["arguments", "parameters", "args", "input"])],
)
def test_every_spelling_of_the_keys_is_read(name: str, given: str) -> None:
    for call in (
        {name: "f", given: {"a": 1}},
        {given: {"a": 1}, name: "f"},
        {"type": "function", name: "f", given: {"a": 1}},
    ):
        assert arguments(json.dumps(call)) == {"a": 1}


@pytest.mark.parametrize(
    "call",
    [
        {"function": {"name": "f", "arguments": {"a": 1}}},
        {"type": "function", "function": {"name": "f"}, "parameters": {"a": 1}},
        {"id": "1", "function": {"name": "f", "arguments": '{"a": 1}'}},
        {"tool_calls": [{"id": "pending", "type": "function", "function": {"name": "f"}, "parameters": {"a": 1}}]},
        {"tool_calls": [{"function": {"name": "f", "arguments": ' {"a": 1}\n'}}]},
    ],
)
def test_nested_shapes_are_read(call: dict[str, object]) -> None:
    assert arguments(json.dumps(call)) == {"a": 1}


def test_several_calls_stand_in_one_list() -> None:
    listed = [{"function": {"name": "f", "arguments": {}}}, {"name": "dim_lamp", "arguments": {"id": 3}}]
    assert calls(json.dumps({"tool_calls": listed})) == [("f", {}), ("dim_lamp", {"id": 3})]


def test_a_name_as_a_key_needs_a_marker_and_a_declaration() -> None:
    assert arguments('<|tools_prefix|>[{"f": {"a": 1}}]') == {"a": 1}
    assert is_no_call('<|tools_prefix|>[{"g": {"a": 1}}]')
    assert is_no_call('<|tools_prefix|>[{"f": [1]}]')
    assert is_no_call('[{"f": {"a": 1}}]')


@pytest.mark.parametrize("given", ["[]", "null", "3", '"x"', '"[1]"', '"{"'])
def test_arguments_that_are_no_object_are_known_as_such_behind_a_marker(given: str) -> None:
    assert calls(f'{MARK}{{"name": "f", "arguments": {given}}}') == [("f", None)]
    assert is_no_call(f'{{"name": "f", "arguments": {given}}}')


@pytest.mark.parametrize(
    "text", ['{"name": "f", "age": 3}', '{"name": 3, "arguments": {}}', '{"name": "", "arguments": {}}', "{}"]
)
def test_other_objects_are_no_calls_even_behind_a_marker(text: str) -> None:
    assert is_no_call(text)
    assert is_no_call(MARK + text)


@pytest.mark.parametrize(
    "text", ['[{"name": "f", "arguments": {}}, 3]', "[]", '{"tool_calls": [3]}', '[{"name": "f", "arguments": {}} x']
)
def test_a_list_with_anything_else_in_it_is_no_list_of_calls(text: str) -> None:
    assert is_no_call(MARK + text)


def test_the_whole_ones_of_a_cut_array_are_known() -> None:
    reading = read('[{"name": "f", "arguments": {}}, {"name": "f", "argum')
    assert (len(reading.calls), reading.dangling, reading.complete) == (1, True, False)
    assert reading.end == len('[{"name": "f", "arguments": {}}')


def test_a_trailing_comma_promises_another_call() -> None:
    assert read('[{"name": "f", "arguments": {}},').dangling


def test_a_bracket_left_open_is_forgiven() -> None:
    assert calls('functools[{"name": "f", "arguments": {}}\n') == [("f", {})]


def test_an_array_that_is_only_opened_is_unfinished() -> None:
    assert is_unfinished("[TOOL_CALLS] [")


@pytest.mark.parametrize(
    "text", ['{"name": "f", "arguments": {"a": NaN}}', '{"name": "f", "arguments": {"a": 1,}}', '{"a" "b"}']
)
def test_broken_json_is_no_call(text: str) -> None:
    assert is_no_call(MARK + text)
