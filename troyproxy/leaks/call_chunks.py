"""Repaired calls in the shapes of Chat Completions: chunks of a stream, or the message of a whole answer.

Id, type and name stand once, in the first chunk of a call; later ones carry index and arguments only. Legacy
requests (`functions`) get ``function_call`` and the first call only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_ENVELOPE: Final = ("id", "object", "created", "model", "system_fingerprint", "service_tier", "provider")


@dataclass(frozen=True, slots=True)
class Call:
    """A call to send: *arguments* is the JSON text of an object, never empty."""

    id: str
    name: str
    arguments: str


def chunks_of(
    calls: Sequence[Call],
    envelope: Mapping[str, object],
    choice: int,
    *,
    role_sent: bool,
    finish_reason: str,
    legacy: bool = False,
) -> list[dict[str, object]]:
    """Return the chunks that say *calls* in choice *choice* and finish it. *envelope* is any chunk of the upstream.

    *role_sent*: a chunk with the role went out before.
    """
    shared = {key: envelope[key] for key in _ENVELOPE if key in envelope}
    shared.setdefault("object", "chat.completion.chunk")
    role: list[dict[str, object]] = [] if role_sent else [{"role": "assistant", "content": None}]
    said = [*role, *(_legacy_deltas(calls) if legacy else _deltas(calls))]
    chunks = [_chunk(shared, choice, delta, None) for delta in said]
    return [*chunks, _chunk(shared, choice, {}, finish_reason)]


def message_of(calls: Sequence[Call], prose: str | None, *, legacy: bool = False) -> dict[str, object]:
    """Return the assistant's message: the prose before the leak (empty becomes null) and the calls."""
    message: dict[str, object] = {"role": "assistant", "content": prose or None}
    if legacy:
        return {**message, "function_call": _function(calls[0])}
    return {
        **message,
        "tool_calls": [{"id": call.id, "type": "function", "function": _function(call)} for call in calls],
    }


def _deltas(calls: Sequence[Call]) -> Iterator[dict[str, object]]:
    for index, call in enumerate(calls):
        opening = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        yield {"tool_calls": [opening]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": call.arguments}}]}


def _legacy_deltas(calls: Sequence[Call]) -> Iterator[dict[str, object]]:
    yield {"function_call": {"name": calls[0].name, "arguments": ""}}
    yield {"function_call": {"arguments": calls[0].arguments}}


def _function(call: Call) -> dict[str, object]:
    return {"name": call.name, "arguments": call.arguments}


def _chunk(
    shared: Mapping[str, object], choice: int, delta: Mapping[str, object], finish_reason: str | None
) -> dict[str, object]:
    body = {"index": choice, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return {**shared, "choices": [body]}
