"""Apps that stand behind a layer in these tests: raw ASGI callables that write down what reached them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.asgi import Message, Receive, Scope, Send

SSE = (b"content-type", b"text/event-stream")
JSON = (b"content-type", b"application/json")
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
LEAK = '<function=get_weather>{"city": "Oslo"}</function>'
HI = [{"role": "user", "content": "hi"}]


def ask(**fields: object) -> dict[str, object]:
    """Return a chat request."""
    return {"model": "m1", "messages": HI, **fields}


def event(value: object) -> bytes:
    """Return one event as an upstream would write it, with spacing that ours would not have."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(content: str | None = None, *, index: int = 0, finish: str | None = None, **more: object) -> bytes:
    """Return one chunk of a chat stream."""
    said: dict[str, object] = {} if content is None else {"content": content}
    return event({"id": "c1", "choices": [{"index": index, "delta": {**said, **more}, "finish_reason": finish}]})


USAGE = event({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})
DONE = b"data: [DONE]\n\n"
STOP = delta(finish="stop")


@dataclass(slots=True)
class RawApp:
    """Answers each request with *status*, *headers* and *chunks*, one message a chunk."""

    chunks: Sequence[bytes] = (b"{}",)
    headers: Iterable[tuple[bytes, bytes]] = (JSON,)
    status: int = 200
    scopes: list[Scope] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        if scope["type"] != "http":
            self.messages.append(await receive())
            return
        await self._read(receive)
        await send({"type": "http.response.start", "status": self.status, "headers": list(self.headers)})
        for chunk in self.chunks[:-1]:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": self.chunks[-1], "more_body": False})

    async def _read(self, receive: Receive) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            self.messages.append(message)
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.bodies.append(body)

    @property
    def got(self) -> dict[str, object]:
        """The last request, decoded."""
        decoded: dict[str, object] = json.loads(self.bodies[-1])
        return decoded

    def header(self, name: bytes) -> bytes | None:
        """Return a header of the last request."""
        return next((value for key, value in self.scopes[-1]["headers"] if key == name), None)


def stream_app(*chunks: bytes, headers: Iterable[tuple[bytes, bytes]] = (SSE,)) -> RawApp:
    """Return an app that streams *chunks*."""
    return RawApp(chunks=chunks, headers=headers)


def cut_everywhere(whole: bytes) -> list[list[bytes]]:
    """Return *whole* cut in two at every byte, and cut into single bytes."""
    pairs = [[whole[:at], whole[at:]] for at in range(1, len(whole))]
    return [*pairs, [whole[at : at + 1] for at in range(len(whole))]]


def contents(body: bytes, index: int = 0) -> str:
    """Return the text that a client reads from an event stream for one choice."""
    said = ""
    for frame in body.split(b"\n\n"):
        data = frame.removeprefix(b"data: ")
        if not frame.startswith(b"data: ") or data == b"[DONE]":
            continue
        for choice in json.loads(data).get("choices") or ():
            if choice["index"] == index:
                said += choice["delta"].get("content") or ""
    return said
