"""Drive an ASGI app by hand: say what arrives and when, see what was sent and in which order.

`httpx.ASGITransport` returns only after the app has ended, so it can prove neither streaming nor disconnects; this can.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class AfterSent:
    """A script step: what follows arrives only after the app has sent *count* messages."""

    count: int


@dataclass(frozen=True, slots=True)
class When:
    """A script step: what follows arrives only after *event* is set by the test or its app."""

    event: asyncio.Event


Step = Message | AfterSent | When


@dataclass(slots=True)
class Exchange:
    """What one request led to."""

    sent: list[Message] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    """Both directions as they happened: ``receive http.request``, ``send http.response.start``, …"""
    waited: bool = False
    """Whether the app ever listened beyond the script's end (where a connected client says nothing)."""

    @property
    def status(self) -> int:
        status: int = next(m["status"] for m in self.sent if m["type"] == "http.response.start")
        return status

    @property
    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        return list(next(m["headers"] for m in self.sent if m["type"] == "http.response.start"))

    def header(self, name: str) -> str | None:
        """Return the value of the first header *name*, or None."""
        wanted = name.lower().encode()
        return next((value.decode() for key, value in self.raw_headers if key == wanted), None)

    @property
    def chunks(self) -> list[bytes]:
        return [m.get("body", b"") for m in self.sent if m["type"] == "http.response.body"]

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    def json(self) -> Any:  # noqa: ANN401 - JSON is what the test expects it to be
        return json.loads(self.body)


def http_scope(
    path: str = "/v1/chat/completions",
    *,
    method: str = "POST",
    headers: Mapping[str, str] | Iterable[tuple[bytes, bytes]] = (),
    query: bytes = b"",
    client: tuple[str, int] | None = ("127.0.0.1", 50000),
) -> Scope:
    """Return an HTTP scope as a server makes it; the `state` of a lifespan is there and empty."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    raw = [(_bytes(name).lower(), _bytes(value)) for name, value in pairs]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query,
        "headers": raw if any(name == b"host" for name, _ in raw) else [(b"host", b"127.0.0.1:31337"), *raw],
        "client": client,
        "server": ("127.0.0.1", 31337),
        "state": {},
    }


def _bytes(value: str | bytes) -> bytes:
    return value.encode("latin-1") if isinstance(value, str) else value


def request_body(body: bytes | Mapping[str, object] = b"", *, cuts: Iterable[int] = ()) -> list[Step]:
    """Return the messages that carry *body* (a mapping is sent as JSON), cut at the offsets *cuts*."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    edges = [0, *sorted(cuts), len(raw)]
    pieces = [raw[start:end] for start, end in itertools.pairwise(edges)]
    last = len(pieces) - 1
    return [{"type": "http.request", "body": piece, "more_body": i < last} for i, piece in enumerate(pieces)]


DISCONNECT: Message = {"type": "http.disconnect"}


class _Client:
    """The other end of one request: plays the script, writes down what comes."""

    def __init__(self, script: Iterable[Step]) -> None:
        self.exchange = Exchange()
        self._steps = list(script)
        self._progress = asyncio.Condition()

    async def receive(self) -> Message:
        while self._steps:
            step = self._steps.pop(0)
            if isinstance(step, AfterSent):
                await self._until_sent(step.count)
            elif isinstance(step, When):
                await step.event.wait()
            else:
                if step["type"] == "http.disconnect":
                    self._steps.insert(0, step)  # a client that has left stays away
                self.exchange.order.append(f"receive {step['type']}")
                return dict(step)
        self.exchange.waited = True
        await asyncio.Event().wait()
        raise AssertionError

    async def _until_sent(self, count: int) -> None:
        async with self._progress:
            await self._progress.wait_for(lambda: len(self.exchange.sent) >= count)

    async def send(self, message: Message) -> None:
        self.exchange.order.append(f"send {message['type']}")
        self.exchange.sent.append(dict(message))
        async with self._progress:
            self._progress.notify_all()


async def drive(app: App, scope: Scope, script: Iterable[Step] = (), *, limit_s: float = 20.0) -> Exchange:
    """Run *app* for one request and return the exchange; a TimeoutError after *limit_s* says that it never ended.

    After the script the client stays connected and silent. The app runs under `Lint`.
    """
    client = _Client(script)
    async with asyncio.timeout(limit_s):
        await Lint(app)(scope, client.receive, client.send)
    return client.exchange


async def post(
    app: App, body: bytes | Mapping[str, object], path: str = "/v1/chat/completions", **headers: str
) -> Exchange:
    """Post *body* as JSON to *path* and return the exchange; ``x_api_key="k"`` is the header ``x-api-key``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await drive(app, http_scope(path, headers={"content-type": "application/json", **named}), request_body(body))


class Lint:
    """ASGI middleware that fails the test when the app inside breaks the order or the shape of its messages."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        check = _ResponseCheck(head=scope["method"] == "HEAD")

        async def send_with_check(message: Message) -> None:
            check.see(message)
            await send(message)

        await self.app(scope, receive, send_with_check)


class _ResponseCheck:
    """The order of one response: start, bodies, the last of which says so; as many bytes as were announced."""

    def __init__(self, *, head: bool) -> None:
        self._head = head
        self._started = self._ended = False
        self._left: int | None = None

    def see(self, message: Message) -> None:
        assert not self._ended, f"{message['type']} after the response had ended"
        if message["type"] == "http.response.start":
            self._start(message)
        elif message["type"] == "http.response.body":
            self._body(message)
        else:
            raise AssertionError(f"no such message: {message['type']}")

    def _start(self, message: Message) -> None:
        assert not self._started, "the response started twice"
        assert type(message["status"]) is int, "a status is an int"
        for name, value in message.get("headers", ()):
            assert isinstance(name, bytes), f"header name {name!r}"
            assert isinstance(value, bytes), f"header value of {name!r}"
            assert name == name.lower(), f"header {name!r} is not lower case"
            assert not {b"\r"[0], b"\n"[0]} & set(value), f"header {name!r} holds a line break"
            if name == b"content-length":
                assert self._left is None, "content-length twice"
                self._left = int(value)
        self._started = True

    def _body(self, message: Message) -> None:
        assert self._started, "a body before the start"
        body = message.get("body", b"")
        assert isinstance(body, bytes), "a body is bytes"
        self._ended = not message.get("more_body", False)
        if self._left is not None and not self._head:
            self._left -= len(body)
            assert self._left >= 0, "more bytes than content-length says"
            assert not (self._ended and self._left), f"{self._left} bytes fewer than content-length says"
