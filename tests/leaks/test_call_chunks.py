from __future__ import annotations

import json
from typing import Any

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from troyproxy.leaks.call_chunks import Call, chunks_of, message_of

CALLS = (Call("call_a", "dim_lamp", '{"id": 3}'), Call("call_b", "other", "{}"))
ENVELOPE: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "system_fingerprint": "fp",
    "choices": [{"index": 0, "delta": {"content": "x"}}],
    "usage": {"total_tokens": 1},
}


def chunks(
    calls: tuple[Call, ...] = CALLS,
    **changed: Any,  # noqa: ANN401
) -> list[dict[str, Any]]:
    """Return the chunks of *calls* in choice 0."""
    given = {"role_sent": False, "finish_reason": "tool_calls", **changed}
    return chunks_of(calls, given.pop("envelope", ENVELOPE), given.pop("choice", 0), **given)


def accumulated(events: list[dict[str, Any]]) -> Any:  # noqa: ANN401 -- the SDK's types are generic
    """Return the completion that the official SDK makes of the chunks."""
    state: Any = ChatCompletionStreamState()
    for event in events:
        state.handle_chunk(ChatCompletionChunk.model_validate(event))
    return state.get_final_completion()


def test_the_chunks_have_the_documented_shapes() -> None:
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks()]
    opening = {"index": 0, "id": "call_a", "type": "function", "function": {"name": "dim_lamp", "arguments": ""}}
    assert deltas[:3] == [
        {"role": "assistant", "content": None},
        {"tool_calls": [opening]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"id": 3}'}}]},
    ]
    assert (len(deltas), deltas[-1]) == (6, {})


def test_only_the_last_chunk_finishes() -> None:
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks()]
    assert reasons == [None] * 5 + ["tool_calls"]


def test_no_role_is_sent_twice() -> None:
    assert all("role" not in chunk["choices"][0]["delta"] for chunk in chunks(role_sent=True))


def test_the_envelope_is_the_upstream_s_without_its_usage() -> None:
    wanted = {key: value for key, value in ENVELOPE.items() if key not in {"choices", "usage"}}
    for chunk in chunks(choice=2):
        assert {key: value for key, value in chunk.items() if key != "choices"} == wanted
        assert [choice["index"] for choice in chunk["choices"]] == [2]


def test_an_envelope_without_an_object_gets_one() -> None:
    assert chunks(envelope={"id": "x"})[0]["object"] == "chat.completion.chunk"


@pytest.mark.parametrize("reason", ["tool_calls", "length"])
def test_the_official_sdk_accumulates_the_same_calls(reason: str) -> None:
    if reason == "length":  # the SDK raises for a cut answer when it is asked for the final completion
        events = [ChatCompletionChunk.model_validate(chunk) for chunk in chunks(finish_reason=reason)]
        assert events[-1].choices[0].finish_reason == "length"
        return
    (choice,) = accumulated(chunks()).choices
    made = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls]
    assert made == [("call_a", "dim_lamp", {"id": 3}), ("call_b", "other", {})]
    assert (choice.finish_reason, choice.message.content, choice.message.role) == ("tool_calls", None, "assistant")


def test_the_official_sdk_keeps_prose_that_went_out_before() -> None:
    prose = {**ENVELOPE, "usage": None, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hm. "}}]}
    (choice,) = accumulated([prose, *chunks(role_sent=True)]).choices
    assert (choice.message.content, len(choice.message.tool_calls)) == ("Hm. ", 2)


def test_the_official_sdk_accumulates_a_legacy_call() -> None:
    events = [ChatCompletionChunk.model_validate(chunk) for chunk in chunks(legacy=True, finish_reason="function_call")]
    said = [event.choices[0].delta.function_call for event in events if event.choices[0].delta.function_call]
    assert "".join(one.name or "" for one in said) == "dim_lamp"
    assert "".join(one.arguments or "" for one in said) == '{"id": 3}'


@pytest.mark.parametrize(("prose", "content"), [("", None), (None, None), ("Hm.", "Hm.")])
def test_a_whole_message_carries_prose_and_calls(prose: str | None, content: str | None) -> None:
    message = message_of(CALLS, prose)
    body = {**ENVELOPE, "object": "chat.completion", "usage": None}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    read: Any = ChatCompletion.model_validate({**body, "choices": [choice]}).choices[0].message
    assert (read.role, read.content) == ("assistant", content)
    assert [(call.id, call.function.name, call.function.arguments) for call in read.tool_calls] == [
        (call.id, call.name, call.arguments) for call in CALLS
    ]


def test_a_legacy_message_carries_the_first_call() -> None:
    assert message_of(CALLS, None, legacy=True) == {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "dim_lamp", "arguments": '{"id": 3}'},
    }
