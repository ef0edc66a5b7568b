"""The whole gateway in this process, with an upstream that is none: what a request costs without server and network.

Processor time is the best of some rounds; calls of functions are counted exactly, so they tell two versions apart on
any machine.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from tests.asgi import App, Message, Scope
from tests.bench.figures import Layer
from tests.bench.servers import configuration, environment, new_key, prepare
from tests.bench.shapes import DONE, FIRST, KB, LAST, USAGE, completion, moment, request
from troyproxy.api.wiring import Wiring
from troyproxy.app import create_app
from troyproxy.ports import Ear, UpstreamRequest, UpstreamResponse, gathered
from troyproxy.proxy.answers import PEER, Send
from troyproxy.settings.load import load

EVENTS: Final = 64
WHOLE: Final = completion(KB)
PARTS: Final = (FIRST, *(moment(at, 0.0) for at in range(EVENTS - 3)), LAST, USAGE + DONE)
NOBODY: Final = 9
"""The port of an upstream that is not called."""
COUNTED: Final = 50
SETTLE_S: Final = 0.1
"""The writer is done by then; it counts."""
SHAPES: Final = {
    "gateway: a request, 1 KB": request("bench/fast"),
    "gateway: a combo of two": request("first-422"),
    "gateway: with 5 tools": request("bench/fast", tools=True),
    "gateway: 100 KB": request("bench/kb100"),
}
STREAMS: Final = {
    "gateway: an event of a stream": request("bench/live-64-20", stream=True),
    "gateway: an event, 5 tools": request("bench/live-64-20", stream=True, tools=True),
}


@dataclass(slots=True)
class Told:
    """An answer that is there."""

    parts: Sequence[bytes]
    headers: tuple[tuple[bytes, bytes], ...]
    status: int = 200
    ear: Ear | None = None

    @property
    def whole(self) -> bytes | None:
        """Return a completion; a stream's events come one by one."""
        return self.parts[0] if len(self.parts) == 1 else None

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the parts, as if each had been waited for."""
        for part in self.parts:
            if self.ear is not None and self.ear(part):
                continue
            if len(self.parts) > 1:
                await asyncio.sleep(0)
            yield part

    async def read(self, limit: int, into: list[bytes], /) -> bool:
        """Put the parts into *into*."""
        return await gathered(self.chunks(), limit, into)

    def listen(self, ear: Ear, /) -> None:
        """Offer the parts that come to *ear*, as a network does."""
        self.ear = ear

    async def aclose(self) -> None:
        """Offer nothing more."""
        self.ear = None


class Stub:
    """An upstream that is none."""

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        """Answer at once."""
        if b'"include_usage"' in request.body:
            return Told(PARTS, ((b"content-type", b"text/event-stream"),))
        length = str(len(WHOLE)).encode()
        return Told((WHOLE,), ((b"content-type", b"application/json"), (b"content-length", length)))

    async def aclose(self) -> None:
        """Do nothing."""


class Client:
    """What our own server tells of a request (`proxy.answers.Peer`): its body is all here, and the client stays."""

    paused = False

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body

    def take_body(self) -> bytes | None:
        """Return the body, once."""
        body, self._body = self._body, None
        return body

    def watch(self, callback: Callable[[], None], /) -> None:
        """Do nothing."""

    def unwatch(self) -> None:
        """Do nothing."""

    def drop(self) -> None:
        """Do nothing."""

    def owns(self, send: Send, /) -> bool:
        """Nobody stands between."""
        del send
        return True

    def put(self, part: bytes, /) -> None:
        """Do nothing."""


@asynccontextmanager
async def gateway_here() -> AsyncIterator[tuple[App, str]]:
    with tempfile.TemporaryDirectory() as folder:
        key = new_key()
        prepare(Path(folder), configuration(NOBODY))
        env = {**environment(Path(folder)), "TROY_LOG": "error", "BENCH_CLIENT_KEY": key}
        async with create_app(load_again=lambda: load(env), wiring=Wiring(upstream=Stub())) as app:
            yield app, key


class Caller:
    """Calls *app* with one body, again and again."""

    def __init__(self, app: App, key: str, body: bytes) -> None:
        self._app, self._body = app, body
        self._headers = [
            (b"host", b"127.0.0.1"),
            (b"content-type", b"application/json"),
            (b"authorization", b"Bearer " + key.encode()),
            (b"content-length", str(len(body)).encode()),
        ]

    async def __call__(self, count: int) -> None:
        """Call it *count* times, each in a task of its own, as a server does."""
        loop = asyncio.get_running_loop()
        for _ in range(count):
            await loop.create_task(self._once())

    async def _once(self) -> None:
        async def receive() -> Message:
            raise RuntimeError("the body is all here, and the client tells when it leaves")

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] != 200:
                raise RuntimeError(f"the gateway answered {message['status']}")

        await self._app(self._scope(), receive, send)

    def _scope(self) -> Scope:
        path = "/v1/chat/completions"
        where = {"server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2), "scheme": "http", "root_path": ""}
        what = {"method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "http_version": "1.1"}
        asgi = {"version": "3.0", "spec_version": "2.3"}
        more = {"state": {}, "extensions": {PEER: Client(self._body)}}
        return {"type": "http", "asgi": asgi, "headers": self._headers, **where, **what, **more}


async def whole_gateway(rounds: int, count: int = 200) -> list[Layer]:
    """Return what requests and events cost: the best of *rounds* of *count* requests."""
    async with gateway_here() as (app, key):
        each = {name: (Caller(app, key, body), 1) for name, body in SHAPES.items()}
        events = {name: (Caller(app, key, body), EVENTS) for name, body in STREAMS.items()}
        return [await _layer(name, call, parts, rounds, count) for name, (call, parts) in {**each, **events}.items()]


async def _layer(name: str, call: Caller, parts: int, rounds: int, count: int) -> Layer:
    count = max(1, count // min(parts, 10))
    await call(count)
    await asyncio.sleep(SETTLE_S)
    best = min([await _cpu_s(call, count) for _ in range(rounds)])
    return Layer(name, best / count / parts * 1e6, await _calls(call) / parts)


async def _cpu_s(call: Caller, count: int) -> float:
    began = time.process_time()
    await call(count)
    await asyncio.sleep(SETTLE_S)
    return time.process_time() - began


async def _calls(call: Caller) -> float:
    """Return the calls of functions for a request, in this thread."""
    made = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal made
        made += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        await call(COUNTED)
    finally:
        sys.setprofile(None)
    return made / COUNTED
