"""The question for a summary, and what is read of the answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.wire.summary import LEFT_OUT, OVERHEAD, question, summary_in, transcript_of


def completion(text: object) -> object:
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}


def told(text: object) -> str:
    """The summary without its introduction."""
    return summary_in(completion(text)).partition("\n\n")[2]


# --- the question ---


def test_the_question_is_a_cool_bounded_chat_request() -> None:
    asked = json.loads(question("m", "user: hi", max_tokens=800, as_json=False))
    assert {key: asked[key] for key in asked if key != "messages"} == {
        "model": "m",
        "temperature": 0.1,
        "max_tokens": 800,
        "stream": False,
    }


def test_a_model_that_takes_it_is_asked_for_json() -> None:
    asked = json.loads(question("m", "user: hi", max_tokens=800, as_json=True))
    assert asked["response_format"] == {"type": "json_object"}


def test_the_question_names_the_four_members() -> None:
    asked = json.loads(question("m", "user: hi", max_tokens=800, as_json=False))
    for name in ("summary", "key_decisions", "task_progress", "active_entities"):
        assert name in asked["messages"][0]["content"]


def test_what_the_question_needs_beside_the_transcript_is_bounded() -> None:
    asked = json.loads(question("m", "", max_tokens=800, as_json=False))
    assert sum(len(message["content"]) for message in asked["messages"]) <= OVERHEAD


# --- the transcript ---


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ({"role": "user", "content": "hi"}, "user: hi"),
        (
            {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url"}]},
            "user: see [image_url]",
        ),
        ({"role": "assistant", "content": None}, ""),
        ({"role": "user", "content": ["odd"]}, ""),
        (
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}, None, {}]},
            'assistant calls f {"a": 1}',
        ),
        ({"role": "assistant", "function_call": {"name": "f", "arguments": {"a": 1}}}, 'assistant calls f {"a":1}'),
        ({"content": "hi"}, "unknown: hi"),
        (7, ""),
    ],
)
def test_a_message_becomes_lines(message: object, line: str) -> None:
    assert transcript_of([message], 1000) == line


def test_messages_stand_in_their_order() -> None:
    assert (
        transcript_of([{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}], 1000) == "user: a\ntool: b"
    )


def test_the_oldest_goes_first_when_there_is_too_much() -> None:
    messages = [{"role": "user", "content": "old " * 50}, {"role": "user", "content": "new"}]
    made = transcript_of(messages, 40)
    assert made.startswith(f"{LEFT_OUT}\n")
    assert made.endswith("old \nuser: new")


def test_no_room_is_no_transcript() -> None:
    assert transcript_of([{"role": "user", "content": "text"}], 0) == f"{LEFT_OUT}\n"


def test_arguments_that_are_nested_too_deep_are_named() -> None:
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    call = {"role": "assistant", "function_call": {"name": "f", "arguments": deep}}
    assert transcript_of([call], 1000) == "assistant calls f [too deep]"


@given(st.lists(st.text(max_size=50), max_size=10), st.integers(0, 200))
def test_a_transcript_keeps_to_its_limit(texts: list[str], limit: int) -> None:
    made = transcript_of([{"role": "user", "content": text} for text in texts], limit)
    assert len(made.encode()) <= limit + len(LEFT_OUT) + 1


# --- the answer ---


def test_the_members_stand_under_their_headings() -> None:
    answer = {
        "summary": "They build a shed.",
        "key_decisions": ["oak", {"roof": "tin"}, ""],
        "task_progress": [],
        "active_entities": 3,
        "more": "x",
    }
    assert told(json.dumps(answer)) == (
        'Summary:\nThey build a shed.\n\nKey decisions:\n- oak\n- {"roof":"tin"}\n\nActive entities:\n3'
    )


@pytest.mark.parametrize("around", ["```json\n{}\n```", "Here it is: {} That is all.", "<think>a {{ b</think>{}"])
def test_what_stands_around_the_object_is_passed_over(around: str) -> None:
    assert told(around.replace("{}", '{"summary": "a shed"}')) == "Summary:\na shed"


@pytest.mark.parametrize("text", ["They build a shed.", '{"summary": "cut off', '{"other": 1}', "[1, 2]"])
def test_an_answer_that_is_not_what_was_asked_for_is_taken_as_it_is(text: str) -> None:
    assert told(text) == text


@pytest.mark.parametrize("text", ["", "  \n", None, "<think>only thoughts</think>"])
def test_an_empty_answer_is_no_summary(text: object) -> None:
    assert summary_in(completion(text)) == ""


@pytest.mark.parametrize("answer", [None, [], {"choices": []}, {"choices": [None]}])
def test_what_is_no_answer_is_no_summary(answer: object) -> None:
    assert summary_in(answer) == ""


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert isinstance(summary_in(completion(text)), str)
