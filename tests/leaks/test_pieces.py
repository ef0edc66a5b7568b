from __future__ import annotations

from typing import Any

import pytest

from troyproxy.leaks.pieces import Piece, is_error, is_silent, pieces, without_text

ONLY_ZERO = frozenset({0})


@pytest.mark.parametrize(
    ("choice", "piece"),
    [
        ({"delta": {"content": "hi"}}, Piece(0, "hi", other=False, structured=False, finished=False)),
        ({"index": 2, "delta": {"role": "assistant"}}, Piece(2, "", other=False, structured=False, finished=False)),
        ({"delta": {"reasoning": "hm"}}, Piece(0, "", other=True, structured=False, finished=False)),
        ({"delta": {"tool_calls": [{}]}}, Piece(0, "", other=True, structured=True, finished=False)),
        ({"delta": {"function_call": {"name": "f"}}}, Piece(0, "", other=True, structured=True, finished=False)),
        ({"delta": {}, "finish_reason": "stop"}, Piece(0, "", other=False, structured=False, finished=True)),
        ({"index": None, "delta": None}, Piece(0, "", other=False, structured=False, finished=False)),
        (
            {"delta": {"content": [{"type": "text", "text": "a"}, {"type": "thinking"}, "b", {"text": "c"}]}},
            Piece(0, "ac", other=False, structured=False, finished=False),
        ),
    ],
)
def test_a_choice_is_read_as_a_piece(choice: dict[str, Any], piece: Piece) -> None:
    assert list(pieces({"choices": [choice]})) == [piece]


@pytest.mark.parametrize("event", [None, 7, [], {}, {"choices": None}, {"choices": []}, {"choices": [None, 3]}])
def test_odd_events_have_no_pieces(event: object) -> None:
    assert list(pieces(event)) == []


@pytest.mark.parametrize(
    ("event", "error"), [({"error": {"message": "x"}}, True), ({"error": None}, False), ({}, False), (None, False)]
)
def test_an_error_is_a_field_that_is_not_null(event: object, error: bool) -> None:
    assert is_error(event) is error


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        ({"delta": {"content": "x"}}, {"delta": {}}),
        ({"delta": {"role": "assistant", "content": "x"}}, {"delta": {"role": "assistant", "content": ""}}),
        ({"delta": {"content": "x", "reasoning": "r"}}, {"delta": {"reasoning": "r"}}),
        ({"delta": {"content": "x"}, "logprobs": {"content": ["x"]}}, {"delta": {}, "logprobs": None}),
        ({"delta": {"content": "x"}, "finish_reason": "stop"}, {"delta": {}, "finish_reason": "stop"}),
        (
            {"delta": {"content": [{"type": "text", "text": "x"}, {"type": "thinking", "thinking": []}]}},
            {"delta": {"content": [{"type": "thinking", "thinking": []}]}},
        ),
        ({"index": 1, "delta": {"content": "x"}}, {"index": 1, "delta": {"content": "x"}}),
        ({"delta": None}, {"delta": None}),
        (None, None),
    ],
)
def test_only_the_text_of_the_leaked_choice_goes(choice: object, left: object) -> None:
    assert without_text({"id": "c", "choices": [choice]}, ONLY_ZERO) == {"id": "c", "choices": [left]}


def test_the_event_itself_is_not_changed() -> None:
    event: dict[str, Any] = {"choices": [{"delta": {"content": "x"}}]}
    without_text(event, ONLY_ZERO)
    assert event == {"choices": [{"delta": {"content": "x"}}]}


def test_a_message_keeps_an_empty_string_as_content() -> None:
    body: dict[str, object] = {"choices": [{"index": 0, "message": {"content": "x"}}]}
    assert without_text(body, ONLY_ZERO, "message") == {"choices": [{"index": 0, "message": {"content": ""}}]}


def test_an_event_without_choices_is_left_alone() -> None:
    assert without_text({"choices": None}, ONLY_ZERO) == {"choices": None}


@pytest.mark.parametrize(
    ("event", "silent"),
    [
        ({"id": "c", "model": "m", "choices": [{"delta": {}, "finish_reason": None}]}, True),
        ({"choices": [{"delta": {}}], "usage": None}, True),
        ({"choices": [{"delta": {}}], "usage": {"total_tokens": 3}}, False),
        ({"choices": [{"delta": {}, "finish_reason": "stop"}]}, False),
        ({"choices": [{"delta": {"role": "assistant", "content": ""}}]}, False),
        ({"choices": [{"delta": None}]}, True),
    ],
)
def test_a_chunk_is_silent_when_a_client_learns_nothing_from_it(event: dict[str, object], silent: bool) -> None:
    assert is_silent(event) is silent
