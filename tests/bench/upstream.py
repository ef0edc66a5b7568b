"""An upstream that answers at once: one small completion, or a stream of thirty-two events. Raw ASGI, nothing else."""

from __future__ import annotations

import json

from tests.asgi import Receive, Scope, Send

_BASE = {"id": "chatcmpl-bench", "created": 1, "model": "fast"}
_USAGE = {"prompt_tokens": 9, "completion_tokens": 32, "total_tokens": 41}
ANSWER = json.dumps(
    {
        **_BASE,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
        "usage": _USAGE,
    }
).encode()


def _event(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: %s\n\n" % json.dumps({**_BASE, "object": "chat.completion.chunk", "choices": [choice]}).encode()


EVENTS = [_event({"role": "assistant", "content": ""}), *[_event({"content": "word "})] * 32, _event({}, "stop")]
LAST = b"data: %s\n\ndata: [DONE]\n\n" % json.dumps({**_BASE, "choices": [], "usage": _USAGE}).encode()


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    if not json.loads(body).get("stream"):
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(ANSWER)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": ANSWER})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    for event in EVENTS:
        await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": LAST})
