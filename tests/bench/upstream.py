"""An upstream that answers at once: one small completion, or a stream of thirty-two events.

A bare protocol with answers made beforehand, so that what is measured is the gateway. Its own process:

    python -m tests.bench.upstream PORT
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Final, cast

import uvloop

_BASE: Final = {"id": "chatcmpl-bench", "created": 1, "model": "fast"}
_USAGE: Final = {"prompt_tokens": 9, "completion_tokens": 32, "total_tokens": 41}
_EVENTS: Final = 32


def _whole() -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
    body = json.dumps({**_BASE, "object": "chat.completion", "choices": [choice], "usage": _USAGE}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def _chunk(data: str) -> bytes:
    event = b"data: %s\n\n" % data.encode()
    return b"%x\r\n%s\r\n" % (len(event), event)


def _event(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _chunk(json.dumps({**_BASE, "object": "chat.completion.chunk", "choices": [choice]}))


def _stream() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    yield _event({"role": "assistant", "content": ""})
    yield from [_event({"content": "word "})] * _EVENTS
    yield _event({}, "stop")
    yield _chunk(json.dumps({**_BASE, "choices": [], "usage": _USAGE})) + _chunk("[DONE]") + b"0\r\n\r\n"


class Upstream(asyncio.Protocol):
    """One connection. Requests come one after the other and have a content-length."""

    whole: Final = _whole()
    stream: Final = tuple(_stream())

    def __init__(self) -> None:
        self._seen = bytearray()
        self._transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head = self._seen.find(b"\r\n\r\n")
        if head < 0:
            return
        length = int(bytes(self._seen[:head]).lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        body = bytes(self._seen[head + 4 : head + 4 + length])
        if len(body) < length:
            return
        self._seen.clear()
        for part in self.stream if json.loads(body).get("stream") else (self.whole,):
            self._transport.write(part)  # one write an event, as a model sends them


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", port, backlog=256)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
