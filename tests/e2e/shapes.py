"""What an OpenAI-compatible upstream says, as bytes: completions, stream events, errors. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

DONE: Final = b"data: [DONE]\n\n"
USAGE: Final[Mapping[str, int]] = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def dumps(value: object) -> bytes:
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


def event(value: object) -> bytes:
    """Return one SSE event."""
    return b"data: " + dumps(value) + b"\n\n"


def delta(content: str | None = None, finish: str | None = None, **more: object) -> bytes:
    """Return one event of a chat stream; *more* goes beside ``choices``."""
    said = {} if content is None else {"content": content}
    choice = {"index": 0, "delta": said, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return event({**head, "choices": [choice], **more})


def usage_event(usage: Mapping[str, object] = USAGE) -> bytes:
    """Return the event that carries the usage and no choice."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return event({**head, "choices": [], "usage": dict(usage)})


def role() -> bytes:
    """Return the first event of a stream, which says who speaks and nothing else."""
    choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    return event(
        {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    )


def completion(content: str, *, model: str = "m", usage: Mapping[str, object] = USAGE) -> bytes:
    """Return a whole chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model}
    return dumps({**head, "choices": [choice], "usage": dict(usage)})


def error(message: str, code: str | int | None = None, **more: object) -> bytes:
    """Return a vendor's error body."""
    return dumps({"error": {"message": message, "type": "error", "param": None, "code": code, **more}})
