"""What is said, and when a tool is called."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.demo.answers import Answer, answer_to, arguments_for, chosen_tool, pieces_of
from troyproxy.demo.asks import Ask, Tool, ask_of
from troyproxy.demo.faults import Kind

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CLOCK = {"type": "function", "function": {"name": "currentTime"}}


def ask(text: object = "hi", **body: Any) -> Ask:  # noqa: ANN401 - a JSON body
    messages = [{"role": body.pop("role", "user"), "content": text}]
    parsed = ask_of(json.dumps({"model": "chat", "messages": messages, **body}).encode())
    assert parsed is not None
    return parsed


def say(asked: Ask, kind: Kind = Kind.ANSWER) -> Answer:
    return answer_to(asked, kind, {})


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"7", b"{}", b'{"model":7}', b"\xff", b"[" * 100_000],
)
def test_what_is_no_request_is_refused(raw: bytes) -> None:
    assert ask_of(raw) is None


@given(st.dictionaries(st.sampled_from(["messages", "tools", "n", "max_tokens", "stop", "tool_choice"]), st.text()))
def test_odd_fields_are_read_as_absent(fields: dict[str, str]) -> None:
    parsed = ask_of(json.dumps({**fields, "model": "chat"}).encode())
    assert parsed is not None
    assert say(parsed).finish == "stop"


@pytest.mark.parametrize(
    ("content", "text"),
    [("a", "a"), ([{"type": "text", "text": "a"}, {"type": "image_url"}, "b"], "a b"), (None, ""), (7, "")],
)
def test_the_text_of_every_kind_of_content_is_found(content: object, text: str) -> None:
    assert ask(content).text == text


def test_an_answer_repeats_what_was_said() -> None:
    assert 'You said: "hi"' in say(ask()).text


def test_a_limit_ends_the_answer() -> None:
    answer = say(ask(max_tokens=3))
    assert (len(answer.pieces), answer.finish) == (3, "length")


def test_a_json_answer_is_json() -> None:
    assert json.loads(say(ask(response_format={"type": "json_object"})).text)["you_said"] == "hi"


def test_an_effort_makes_thoughts() -> None:
    assert say(ask(reasoning_effort="low")).thoughts


def test_no_effort_makes_none() -> None:
    assert not say(ask(reasoning_effort="none")).thoughts


def test_a_tool_result_is_read_back() -> None:
    assert say(ask("21 degrees", role="tool", tools=[WEATHER])).text == "The tool said: 21 degrees"


@pytest.mark.parametrize(
    ("text", "options", "tool"),
    [
        ("What is the weather in Paris?", {}, "get_weather"),
        ("What is the current date?", {}, "currentTime"),
        ("Please get_weather", {}, "get_weather"),
        ("Hello", {}, None),
        ("Hello", {"tool_choice": "required"}, "get_weather"),
        ("Hello", {"tool_choice": {"type": "function", "function": {"name": "currentTime"}}}, "currentTime"),
        ("weather", {"tool_choice": "none"}, None),
        ("weather", {"role": "tool"}, None),
        ("weather", {"tools": []}, None),
        ("weather", {"tools": "x"}, None),
    ],
)
def test_a_tool_is_called_by_the_documented_rule(text: str, options: dict[str, object], tool: str | None) -> None:
    asked = ask(text, **{"tools": [WEATHER, CLOCK], **options})
    assert say(asked).tool == tool


def test_a_call_has_arguments_that_fit() -> None:
    answer = say(ask("What is the weather in Paris?", tools=[WEATHER]))
    assert (json.loads(answer.text), answer.finish) == ({"city": "Paris"}, "tool_calls")


def test_a_leak_is_a_call_as_text() -> None:
    answer = say(ask("Hello", tools=[WEATHER]), Kind.LEAK)
    assert (answer.text, answer.tool) == ('<function=get_weather>{"city": "Hello"}</function>', None)


def test_a_leak_without_tools_is_an_answer() -> None:
    assert "Hello" in say(ask(), Kind.LEAK).text


def test_an_echo_is_what_was_received() -> None:
    answer = answer_to(ask(), Kind.ECHO, {"x": "1"})
    assert json.loads(answer.text)["headers"] == {"x": "1"}


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, "to Rome!", "Rome"),
        ({"type": "string"}, "?!", "demo"),
        ({"type": "string", "enum": ["c", "f"]}, "x", "c"),
        ({"type": "string", "default": "d"}, "x", "d"),
        ({"type": "integer"}, "for 12 days", 12),
        ({"type": "integer"}, "x", 1),
        ({"type": "number"}, "for 12 days", 12.0),
        ({"type": "boolean"}, "x", True),
        ({"type": "array"}, "x", []),
        ({"type": "object"}, "x", {}),
        ({"type": ["string", "null"]}, "x", "x"),
        (True, "x", "x"),
    ],
)
def test_an_argument_fits_its_schema(schema: object, text: str, value: object) -> None:
    assert arguments_for(Tool("t", {"properties": {"a": schema}}), text) == {"a": value}


def test_only_required_arguments_are_given_when_some_are() -> None:
    schema = {"properties": {"a": {}, "b": {}}, "required": ["b", "missing"]}
    assert arguments_for(Tool("t", schema), "x") == {"b": "x"}


def test_a_tool_without_properties_gets_no_arguments() -> None:
    assert arguments_for(Tool("t", {}), "x") == {}


def test_no_tool_is_chosen_when_none_is_offered() -> None:
    assert chosen_tool(ask(), force=True) is None


@given(st.text())
def test_pieces_joined_are_the_text(text: str) -> None:
    assert "".join(pieces_of(text)) == text
