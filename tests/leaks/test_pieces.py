"""What is read of an event."""

from __future__ import annotations

from typing import Any

import pytest

from troyproxy.leaks.pieces import Piece, is_error, pieces


@pytest.mark.parametrize(
    ("choice", "piece"),
    [
        ({"delta": {"content": "hi"}}, Piece(0, "hi")),
        ({"index": 2, "delta": {"role": "assistant"}}, Piece(2)),
        ({"delta": {"reasoning": "hm"}}, Piece(0, thoughts=(("reasoning", "hm"),), other=True)),
        ({"delta": {"reasoning": ["hm"]}}, Piece(0, other=True)),
        ({"delta": {"tool_calls": [{}]}}, Piece(0, other=True, structured=True, calls=[{}])),
        ({"delta": {"function_call": {"name": "f"}}}, Piece(0, other=True, structured=True)),
        ({"delta": {}, "finish_reason": "stop"}, Piece(0, finish="stop")),
        ({"delta": {"content": "x"}, "finish_reason": ""}, Piece(0, "x")),
        ({"index": None, "delta": None}, Piece(0)),
        ({"delta": {"content": [{"type": "text", "text": "a"}, {"type": "x"}, "b", {"text": "c"}]}}, Piece(0, "ac")),
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
