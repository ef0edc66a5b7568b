"""Changed copies of events; the event itself stays as it was."""

from __future__ import annotations

from typing import Any

import pytest

from troyproxy.leaks import edits

PARTS = [{"type": "text", "text": "abc"}, {"type": "thinking"}, {"type": "text", "text": "def"}]


@pytest.mark.parametrize(
    ("choice", "keep", "left"),
    [
        ({"delta": {"content": "xyz"}}, 0, {"delta": {}}),
        ({"delta": {"content": "xyz"}}, 2, {"delta": {"content": "xy"}}),
        ({"delta": {"role": "assistant", "content": "x"}}, 0, {"delta": {"role": "assistant", "content": ""}}),
        ({"delta": {"content": "x", "reasoning": "r"}}, 0, {"delta": {"reasoning": "r"}}),
        ({"delta": {"content": "x"}, "logprobs": {"content": ["x"]}}, 0, {"delta": {}, "logprobs": None}),
        ({"delta": {"content": "x"}, "finish_reason": "stop"}, 0, {"delta": {}, "finish_reason": "stop"}),
        ({"delta": {"content": PARTS}}, 0, {"delta": {"content": [{"type": "thinking"}]}}),
        (
            {"delta": {"content": PARTS}},
            4,
            {"delta": {"content": [PARTS[0], {"type": "thinking"}, {"type": "text", "text": "d"}]}},
        ),
        ({"index": 1, "delta": {"content": "x"}}, 0, {"index": 1, "delta": {"content": "x"}}),
        ({"delta": None}, 0, {"delta": None}),
        (None, 0, None),
    ],
)
def test_only_the_text_of_the_leaked_choice_is_cut(choice: object, keep: int, left: object) -> None:
    event: dict[str, Any] = {"id": "c", "choices": [choice]}
    assert edits.cut_text(event, 0, keep) == {"id": "c", "choices": [left]}
    assert event == {"id": "c", "choices": [choice]}


def test_the_content_of_a_message_becomes_empty_and_never_absent() -> None:
    event: dict[str, Any] = {"choices": [{"message": {"content": "x"}}]}
    assert edits.cut_text(event, 0, 0, "message") == {"choices": [{"message": {"content": ""}}]}


@pytest.mark.parametrize(
    ("part", "text", "left"),
    [("delta", "new", {"reasoning": "new"}), ("delta", "", {}), ("message", "", {"reasoning": ""})],
)
def test_a_field_has_its_new_text(part: str, text: str, left: dict[str, str]) -> None:
    event: dict[str, Any] = {"choices": [{part: {"reasoning": "old"}}, {"index": 1, part: None}]}
    assert edits.with_field(event, 0, "reasoning", text, part)["choices"] == [{part: left}, {"index": 1, part: None}]


def test_a_field_of_a_choice_without_a_body_is_left_alone() -> None:
    event: dict[str, Any] = {"choices": [{"delta": None}]}
    assert edits.with_field(event, 0, "reasoning", "x") == event


def test_a_message_gets_new_members_and_loses_its_logprobs() -> None:
    event: dict[str, Any] = {"choices": [{"message": {"refusal": None, "content": "x"}, "logprobs": {}}]}
    assert edits.with_message(event, 0, {"content": None}) == {
        "choices": [{"message": {"refusal": None, "content": None}, "logprobs": None}]
    }


def test_a_message_is_made_where_there_was_none() -> None:
    event: dict[str, Any] = {"choices": [{"message": None}]}
    assert edits.with_message(event, 0, {"content": ""}) == {"choices": [{"message": {"content": ""}}]}


def test_a_choice_alone_is_unfinished_and_brings_no_usage() -> None:
    event: dict[str, Any] = {
        "id": "c",
        "usage": {},
        "choices": [{"index": 0, "finish_reason": "stop", "delta": {"content": "x"}}, {"index": 1}],
    }
    alone = {"id": "c", "choices": [{"index": 0, "finish_reason": None, "delta": {"content": "x"}}]}
    assert edits.alone(event, 0) == alone
    assert edits.without(event, 0) == {"id": "c", "usage": {}, "choices": [{"index": 1}]}


@pytest.mark.parametrize("event", [{}, {"choices": None}, {"choices": "x"}])
def test_events_without_choices_stay_as_they_are(event: dict[str, Any]) -> None:
    assert edits.cut_text(event, 0, 0) == event
    assert edits.with_finish(event, 0, "stop") == event


def test_a_choice_is_left_out_of_odd_choices() -> None:
    assert edits.without({"choices": "x"}, 0) == {"choices": "x"}


@pytest.mark.parametrize(
    ("event", "silent"),
    [
        ({"id": "c", "choices": [{"delta": {}}]}, True),
        ({"id": "c", "choices": []}, True),
        ({"choices": [{"delta": {"content": ""}}]}, True),
        ({"choices": [{"delta": {"role": "assistant"}}]}, False),
        ({"choices": [{"delta": None, "finish_reason": "stop"}]}, False),
        ({"choices": [], "usage": {"total_tokens": 3}}, False),
    ],
)
def test_an_event_is_silent_when_it_tells_a_client_nothing(event: dict[str, Any], silent: bool) -> None:
    assert edits.is_silent(event) is silent


def test_the_roles_of_an_event_are_those_it_tells() -> None:
    event: dict[str, Any] = {
        "choices": [{"delta": {"role": "assistant"}}, {"index": 1, "delta": {"role": None}}, {"index": 2, "delta": 3}]
    }
    assert edits.roles_in(event) == {0}


def test_a_chunk_of_our_own_has_the_envelope_of_another() -> None:
    assert edits.delta({"id": "c", "usage": {}}, 1, {"content": "x"}) == {
        "id": "c",
        "choices": [{"index": 1, "delta": {"content": "x"}, "finish_reason": None}],
    }
