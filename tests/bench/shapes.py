"""What is asked for and what is answered, as bytes: requests of a size, completions of a size, events of a stream.

The model's name says what the upstream does (`upstream.py`): ``fast``, ``kb100`` and ``mb1`` are completions of 1 KB,
100 KB and 1 MB; ``live-64-20`` is a stream of 64 events, 20 ms apart; ``fault-500`` fails. A request brings about as
much as it gets back.
"""

from __future__ import annotations

import json
from typing import Final

KB: Final = 1000
SIZES: Final = {"fast": KB, "kb100": 100 * KB, "mb1": 1000 * KB}
"""Bytes of a completion, by model."""
FAULTS: Final = {"500": 500, "429": 429, "422": 422, "reset": 0}
"""Statuses of failing models; 0: the connection is reset. A 422 benches nobody, so each request meets it anew."""
_PROSE: Final = 'He said "the lamp is dimmed", and it was:\n\tat ninety, which is more than one likes in the evening. '
_USAGE: Final = {"prompt_tokens": 9, "completion_tokens": 32, "total_tokens": 41}
_BASE: Final = {"id": "chatcmpl-bench", "created": 1_760_000_000, "model": "fast"}


def _text(size: int) -> str:
    return (_PROSE * (size // len(_PROSE) + 1))[:size]


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _tool(number: int) -> dict[str, object]:
    city = {"type": "string", "description": "The name of a city, and of its country where that is not plain."}
    schema = {"type": "object", "properties": {"city": city, "days": {"type": "integer"}}, "required": ["city"]}
    about = {
        "name": f"get_weather_{number}",
        "description": "Tells the weather of the next days.",
        "parameters": schema,
    }
    return {"type": "function", "function": about}


def request(model: str, *, tools: bool = False, stream: bool = False) -> bytes:
    """Return the body of a request to *model*: messages of 2 KB at most, as many as it takes; five tools or none."""
    size = SIZES.get(model.rpartition("/")[2], KB) - 200
    pieces = [_text(min(2 * KB, size - at)) for at in range(0, size, 2 * KB)]
    messages = [{"role": ("user", "assistant")[at % 2], "content": piece} for at, piece in enumerate(pieces)]
    asked: dict[str, object] = {"model": model, "stream": stream, "messages": messages}
    if tools:
        asked["tools"] = [_tool(number) for number in range(5)]
    return _json(asked)


def completion(size: int) -> bytes:
    """Return a completion of about *size* bytes."""
    message = {"role": "assistant", "content": _text(size - 280)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return _json({**_BASE, "object": "chat.completion", "choices": [choice], "usage": _USAGE})


def event(delta: dict[str, str], finish: str | None = None) -> bytes:
    """Return one event of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: %s\n\n" % _json({**_BASE, "object": "chat.completion.chunk", "choices": [choice]})


def moment(number: int, sent: float) -> bytes:
    """Return event *number* of a stream, which says so, and when it was sent (monotonic seconds)."""
    return MOMENT % (number, sent)


MOMENT: Final = event({"content": "NUMBER SENT"}).replace(b"NUMBER SENT", b"%d %.6f")
FIRST: Final = event({"role": "assistant", "content": ""})
LAST: Final = event({}, "stop")
USAGE: Final = b"data: %s\n\n" % _json({**_BASE, "object": "chat.completion.chunk", "choices": [], "usage": _USAGE})
DONE: Final = b"data: [DONE]\n\n"
BESIDE: Final = 3
"""Events of a stream that are no moments, when it was not asked for usage: the first, the last, [DONE]."""
