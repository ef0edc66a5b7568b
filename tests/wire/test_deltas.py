"""The commonest event, read at a glance: never another one for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.wire.deltas import UNREAD, is_bare_text, passing, plain_text, without_null_usage


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


@pytest.mark.parametrize("beside", [{}, {"finish_reason": None}, {"finish_reason": ""}, {"usage": None}])
def test_a_piece_of_anything_in_one_choice_passes(beside: dict[str, Any]) -> None:
    assert passing(event({"reasoning": "hm", "tool_calls": [{}]}, **beside)).choices[0].index == 1


@pytest.mark.parametrize(
    "data",
    [
        event({"content": "x"}, finish_reason="stop"),
        event({"content": "x"}, usage={}),
        event({"content": "x"}, {"index": 0, "delta": {}}),
        b'{"choices":[{"index":0}],"usage":{}}',
        b'{"choices":[{"index":0}],"error":"no"}',
        b'{"choices":[{"index":0}],"x_groq":{"usage":{}}}',
        b'{"choices":[]}',
        b'{"choices":[{"index":0}]',
        b"[" * 100_000,
    ],
)
def test_what_says_something_about_the_stream_does_not_pass(data: bytes) -> None:
    with pytest.raises(UNREAD):
        passing(data)


@pytest.mark.parametrize(
    "data",
    [
        b'{"choices":[{"index":0}],"usage": null}',
        b'{"choices":[{"index":0,"usage":null}],"usage":null}',
        b'{"choices":[{"index":0,"usage":null}]}',
        b'{"choices":[],"usage":null}',
        b'{"choices":[{"index":0}],"usage":null',
        b'{"a":' + b"[" * 100_000 + b',"usage":null',
    ],
)
def test_a_null_usage_that_is_no_plain_member_is_left_to_a_closer_look(data: bytes) -> None:
    assert without_null_usage(data) is None


def test_a_plain_null_usage_is_cut_out() -> None:
    assert without_null_usage(b'{"choices":[{"index":0}],"usage":null,"x":1}') == b'{"choices":[{"index":0}],"x":1}'


@pytest.mark.parametrize(
    ("data", "bare"),
    [
        (event({"content": "x", "refusal": None}), True),
        (b'{"choices":[{"delta":{"content":"x"}}],"created":1,"obfuscation":"a","usage":null,"error":null}', True),
        (event({"content": "x", "annotations": []}), False),
        (event({"content": "x", "refusal": "no"}), False),
        (event({"content": "x", "role": "assistant"}), False),
        (event({"content": "x"}, finish_reason="stop"), False),
        (b'{"choices":[{"delta":{"content":"x"}}],"timings":{}}', False),
        (b'{"choices":[{"delta":{"content":"x"}}],"usage":{}}', False),
        (b"[" * 100_000, False),
    ],
)
def test_an_event_is_bare_when_it_says_nothing_but_its_text(data: bytes, bare: bool) -> None:
    assert is_bare_text(data) is bare
