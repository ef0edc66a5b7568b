"""OpenAI's JSON, from answers: completions, chunks, embeddings, models. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from troyproxy.demo.answers import Answer
from troyproxy.demo.asks import Ask

Body = dict[str, object]
FINGERPRINT: Final = "fp_troyproxy_demo"
DONE: Final = b"data: [DONE]\n\n"
DIMENSIONS: Final = 8
MAX_DIMENSIONS: Final = 2048
MAX_INPUTS: Final = 256
_SECRET: Final = frozenset({"authorization", "key", "cookie", "token"})


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to a request, with the identity of the exchange."""

    ask: Ask
    answer: Answer
    number: int
    created: int
    legacy: bool = False
    """Text completion instead of chat."""
    usage_every: bool = False


def dumps(body: object) -> bytes:
    """Return compact JSON."""
    return json.dumps(body, separators=(",", ":")).encode()


def event(body: object) -> bytes:
    """Return one server-sent event."""
    return b"data: " + dumps(body) + b"\n\n"


def usage_of(reply: Reply, tokens: int | None = None) -> Body:
    """Return the usage object; *tokens* of the completion so far (default: all of it)."""
    completion = (reply.answer.tokens if tokens is None else tokens) * reply.ask.choices
    thoughts = min(len(reply.answer.thoughts) * reply.ask.choices, completion)
    return {
        "prompt_tokens": reply.ask.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": reply.ask.prompt_tokens + completion,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": thoughts},
    }


def _envelope(reply: Reply, kind: str) -> Body:
    return {
        "id": f"{'cmpl' if reply.legacy else 'chatcmpl'}-demo-{reply.number}",
        "object": kind,
        "created": reply.created,
        "model": reply.ask.model,
        "system_fingerprint": FINGERPRINT,
    }


def completion(reply: Reply) -> Body:
    """Return the whole answer as one object."""
    answer = reply.answer
    if reply.legacy:
        choice: Body = {"text": answer.text, "logprobs": None, "finish_reason": answer.finish}
    else:
        choice = {"message": _message(reply), "logprobs": None, "finish_reason": answer.finish}
    choices = [{"index": index, **choice} for index in range(reply.ask.choices)]
    kind = "text_completion" if reply.legacy else "chat.completion"
    return {**_envelope(reply, kind), "choices": choices, "usage": usage_of(reply)}


def _message(reply: Reply) -> Body:
    answer = reply.answer
    message: Body = {"role": "assistant", "content": None if answer.tool else answer.text, "refusal": None}
    if answer.thoughts:
        message["reasoning_content"] = "".join(answer.thoughts)
    if answer.tool:
        message["tool_calls"] = [_call(reply, answer.text)]
    return message


def _call(reply: Reply, arguments: str) -> Body:
    function = {"name": reply.answer.tool, "arguments": arguments}
    return {"id": f"call_demo_{reply.number}", "type": "function", "function": function}


def events(reply: Reply) -> Iterator[bytes]:
    """Yield the answer as the events of a stream, [DONE] included."""
    kind = "text_completion" if reply.legacy else "chat.completion.chunk"
    tokens = 0
    for delta, counted in _deltas(reply):
        tokens += counted
        choices = [_stream_choice(reply, index, delta) for index in range(reply.ask.choices)]
        yield event({**_envelope(reply, kind), "choices": choices, **_running_usage(reply, tokens)})
    if reply.ask.include_usage:
        yield event({**_envelope(reply, kind), "choices": [], "usage": usage_of(reply)})
    yield DONE


def _running_usage(reply: Reply, tokens: int) -> Body:
    if reply.usage_every:
        return {"usage": usage_of(reply, tokens)}
    return {"usage": None} if reply.ask.include_usage else {}


def _deltas(reply: Reply) -> Iterator[tuple[Body | None, int]]:
    """Yield deltas and the tokens each of them is worth; None is the end."""
    answer = reply.answer
    if not reply.legacy:
        yield role_delta(answer), 0
        for thought in answer.thoughts:
            yield {"reasoning_content": thought}, 1
    if answer.tool:
        yield {"tool_calls": [{"index": 0, **_call(reply, "")}]}, 0
    for piece in answer.pieces:
        yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} if answer.tool else {"content": piece}, 1
    yield None, 0


def role_delta(answer: Answer) -> Body:
    """Return the first delta of a chat stream."""
    return {"role": "assistant", "content": None if answer.tool else ""}


def _stream_choice(reply: Reply, index: int, delta: Body | None) -> Body:
    finish = reply.answer.finish if delta is None else None
    if reply.legacy:
        return {"index": index, "text": (delta or {}).get("content", ""), "logprobs": None, "finish_reason": finish}
    return {"index": index, "delta": delta or {}, "logprobs": None, "finish_reason": finish}


def role_event(reply: Reply) -> bytes:
    """Return the event that opens a stream and says nothing."""
    choice = _stream_choice(reply, 0, role_delta(reply.answer))
    return event({**_envelope(reply, "chat.completion.chunk"), "choices": [choice]})


def embeddings(ask: Ask) -> Body:
    """Return a small deterministic vector per input."""
    given = ask.body.get("input")
    inputs = given if isinstance(given, list) and given and not isinstance(given[0], int) else [given]
    size = ask.body.get("dimensions")
    size = min(size, MAX_DIMENSIONS) if isinstance(size, int) and size > 0 else DIMENSIONS
    packed = ask.body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _vector(dumps(item), size, packed=packed)}
        for index, item in enumerate(inputs[:MAX_INPUTS])
    ]
    usage = {"prompt_tokens": ask.prompt_tokens, "total_tokens": ask.prompt_tokens}
    return {"object": "list", "data": data, "model": ask.model, "usage": usage}


def _vector(seed: bytes, size: int, *, packed: bool) -> list[float] | str:
    digest = hashlib.shake_256(seed).digest(size)
    vector = [byte / 127.5 - 1.0 for byte in digest]
    return base64.b64encode(struct.pack(f"<{size}f", *vector)).decode() if packed else vector


def model_object(name: str, created: int) -> Body:
    """Return one entry of the model list."""
    return {"id": name, "object": "model", "created": created, "owned_by": "troyproxy-demo"}


def shown(headers: Mapping[str, str]) -> dict[str, str]:
    """Return *headers* without credentials, for the echo."""
    return {name: value for name, value in headers.items() if not _SECRET & set(name.split("-"))}
