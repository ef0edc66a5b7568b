"""The commonest event, read at a glance: never another one for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.wire.deltas import plain_text


def event(delta: object, *more: object, **beside: object) -> bytes:
    choice = {"index": 1, "delta": delta, "logprobs": None, **beside}
    return json.dumps({"id": "c", "choices": [choice, *more]}).encode()


@pytest.mark.parametrize("text", ["", "Hello", "\u00e9\n<tool_call>"])
def test_text_alone_is_read_with_its_index(text: str) -> None:
    assert plain_text(event({"content": text})) == (1, text)
    assert plain_text(event({"content": text, "refusal": None, "tool_calls": None}, finish_reason=None)) == (1, text)


def test_a_missing_index_is_the_first_choice() -> None:
    assert plain_text(b'{"choices": [{"delta": {"content": "x"}}]}') == (0, "x")


@pytest.mark.parametrize(
    "data",
    [
        event({"content": "x", "role": "assistant"}),
        event({"content": "x", "tool_calls": [{}]}),
        event({"content": "x", "reasoning": "hm"}),
        event({"content": "x"}, finish_reason="stop"),
        event({"content": "x"}, finish_reason=""),
        event({"content": None}),
        event({"content": [{"type": "text", "text": "x"}]}),
        event({}),
        event({"content": "x"}, {"index": 0, "delta": {}}),
        b'{"choices": []}',
        b'{"choices": [{"delta": {"content": "x"}}], "error": {"message": "no"}}',
        b'{"choices": [{"index": "0", "delta": {"content": "x"}}]}',
        b"[DONE]",
        b"",
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_every_other_event_is_left_to_a_closer_look(data: bytes) -> None:
    assert plain_text(data) is None


@given(st.recursive(st.none() | st.booleans() | st.text() | st.integers(), st.lists, max_leaves=3))
def test_odd_deltas_never_raise(value: Any) -> None:  # noqa: ANN401 -- any JSON
    found = plain_text(event({"content": value}))
    assert found == ((1, value) if isinstance(value, str) else None)
