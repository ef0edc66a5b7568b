"""What a client did not ask for goes, and nothing else changes by a byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.wire import chat, splice
from troyproxy.wire.sse import Frame, FrameDecoder

NAMES = st.sampled_from(["choices", "delta", "content", "index", "finish_reason", "error", "usage"])
LEAVES = st.none() | st.booleans() | st.integers(-1, 600) | st.floats() | st.sampled_from(["", "x"])
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4))


def frame(text: str) -> Frame:
    (found,) = FrameDecoder().feed(f"data: {text}\n\n".encode())
    return found


@given(JSON)
def test_a_frame_is_stripped_as_its_event_is(value: object) -> None:
    text = json.dumps(value)
    stripped = chat.drop_usage(frame(text))
    expected = chat.strip_usage(value) if isinstance(value, dict) else value
    shown = json.loads(stripped.data) if stripped and stripped.data else None
    assert json.dumps(shown) == json.dumps(expected)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"choices":[{"index":0,"delta":{},"finish_reason":"length"}], "usage":{"prompt_tokens":3}}',
         '{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}'),
        ('{"choices":[{"delta":{}}],"usage":null,"x": 1.50}', '{"choices":[{"delta":{}}],"x": 1.50}'),
        ('{"choices":[{"logprobs":NaN}],"usage":{}}', '{"choices":[{"logprobs":NaN}]}'),
        ('{"choices":[],"usage":null,"error":{"message":"no"}}', '{"choices":[],"error":{"message":"no"}}'),
        ('{"choices":[{"delta":{"content":"\\"usage\\""},"usage":{}}]}', None),
        ('{"choices":[{"delta":{"content":"usage"}}]}', None),
        ('{"choices":[]}', None),
        ('{"usage":', None),
        ('["usage"]', None),
        ("[DONE]", None),
    ],
)  # fmt: skip
def test_only_the_usage_member_goes(before: str, after: str | None) -> None:
    assert chat.drop_usage(frame(before)) == frame(before if after is None else after)


@pytest.mark.parametrize("choices", ['"choices":[],', '"choices":null,', ""])
def test_a_usage_event_without_choices_goes(choices: str) -> None:
    assert chat.drop_usage(frame("{" + choices + '"usage":{"prompt_tokens":3}}')) is None


def test_a_comment_passes() -> None:
    comment = Frame(b': "usage"\n\n', None)
    assert chat.drop_usage(comment) is comment


def test_an_event_without_usage_is_the_same_object() -> None:
    event: dict[str, object] = {"choices": []}
    assert chat.strip_usage(event) is event


@given(JSON)
def test_a_tight_null_usage_is_cut_as_by_the_grammar(value: object) -> None:
    members = {"choices": [value], "usage": None, "x": value}
    text = json.dumps(members, separators=(",", ":"))
    assert chat.drop_usage(frame(text)) == frame(splice.edit(text.encode(), {}, ("usage",)).decode())
