"""Requests into an ASGI app of this process: `ports.Upstream` without a network. Nothing is buffered.

The head is returned when the app starts its response; each chunk waits until it is taken. A closed response tells the
app ``http.disconnect``, and cancels it after a short grace. The app's lifespan is its host's affair.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final
from urllib.parse import quote, unquote, urlencode, urlsplit

from starlette.types import ASGIApp, Message, Scope

from troyproxy.ports import Ear, Headers, UpstreamFailed, UpstreamRequest, UpstreamResponse, gathered
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.decoding import decoded
from troyproxy.upstream.handoff import Handoff

DEFAULT_BASE: Final = "http://asgi/v1"
"""Where an app without a base URL serves the API."""


class AsgiUpstream:
    """Calls *app*; *grace_s* seconds pass between the disconnect and the cancellation."""

    def __init__(self, app: ASGIApp, *, grace_s: float = 0.5) -> None:
        self._app = app
        self._grace_s = grace_s
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        """Call the app with *request* and return its head."""
        exchange = _Exchange(request, self._grace_s)
        # The task outlives this call as the response does; it is owned here, ended by the response or by `aclose`.
        task = asyncio.get_running_loop().create_task(exchange.run(self._app))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(exchange.finished)
        try:
            status, headers = await exchange.head
        except asyncio.CancelledError:
            exchange.leave(task)
            raise
        return AsgiResponse(status, headers, exchange, task)

    async def aclose(self) -> None:
        """Cancel every call in flight and wait for it, within the grace."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._grace_s)


class AsgiResponse:
    """A response in transit; the app runs until it ends or `aclose`."""

    whole: bytes | None = None  # an app's answer comes piece by piece

    def __init__(self, status: int, headers: Headers, exchange: _Exchange, task: asyncio.Task[None]) -> None:
        self.status = status
        self.headers, self._body = decoded(status, headers, exchange.body)
        self._exchange = exchange
        self._task = task

    def chunks(self) -> AsyncIterator[bytes]:
        """Return the body, to be read once."""
        return self._body

    async def read(self, limit: int, into: list[bytes], /) -> bool:
        """Put the body into *into*, unless it is over *limit* bytes."""
        return await gathered(self._body, limit, into)

    def listen(self, ear: Ear, /) -> None:
        """Offer nothing: the app goes on only when its pieces are taken."""

    async def aclose(self) -> None:
        """Tell the app that nobody listens; it does not wait."""
        self._exchange.leave(self._task)


class _Exchange:
    """One request and its response, seen from the app: its scope, receive and send."""

    def __init__(self, request: UpstreamRequest, grace_s: float) -> None:
        self.scope = scope_of(request)
        self.head: asyncio.Future[tuple[int, Headers]] = asyncio.get_running_loop().create_future()
        self.body = Handoff()
        self._request_body: bytes | None = request.body
        self._grace_s = grace_s
        self._gone = asyncio.Event()
        self._complete = False

    async def run(self, app: ASGIApp) -> None:
        await app(self.scope, self._receive, self._send)

    async def _receive(self) -> Message:
        if self._request_body is not None:
            body, self._request_body = self._request_body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self.head.done():
            self.head.set_result((message["status"], _lowered(message.get("headers", ()))))
        elif message["type"] == "http.response.body":
            await self._send_body(message.get("body", b""), more=message.get("more_body", False))

    async def _send_body(self, chunk: bytes, *, more: bool) -> None:
        if self._gone.is_set():
            await asyncio.sleep(0)  # an app that only sends must still be cancellable
            return
        if chunk:
            await self.body.put(bytes(chunk))
        if not more:
            self._complete = True
            self.body.end()
            self._gone.set()

    def leave(self, task: asyncio.Task[None]) -> None:
        """The consumer is gone: disconnect now, cancel after the grace. A complete response may end its own way."""
        self._gone.set()
        self.body.abandon(UpstreamFailed(Fault.RESET, "the response was closed", body_sent=True))
        if not (self._complete or task.done()):
            timer = asyncio.get_running_loop().call_later(self._grace_s, task.cancel)
            task.add_done_callback(lambda _: timer.cancel())

    def finished(self, task: asyncio.Task[None]) -> None:
        """The app returned, failed or was cancelled; whatever is still open fails with it."""
        error = None if task.cancelled() else task.exception()
        detail = f"the app raised {type(error).__name__}" if error else "the app ended without a complete answer"
        failure = UpstreamFailed(Fault.RESET, detail, body_sent=self._request_body is None)
        if error is not None:
            failure.__cause__ = error
        self.body.end(failure)
        if not self.head.done():
            self.head.set_exception(failure)


def _lowered(headers: Iterable[Iterable[bytes]]) -> Headers:
    return tuple((bytes(name).lower(), bytes(value)) for name, value in headers)


def scope_of(request: UpstreamRequest) -> Scope:
    """Return the ASGI scope of *request*, as a server on loopback would make it."""
    base = urlsplit(request.provider.base_url or DEFAULT_BASE)
    raw_path = base.path.rstrip("/") + request.path
    framing = ((b"host", base.netloc.encode()), (b"content-length", str(len(request.body)).encode()))
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": base.scheme,
        "path": unquote(raw_path),
        "raw_path": quote(raw_path, safe="/%:@!$&'()*+,;=~").encode(),
        "query_string": urlencode(request.provider.query).encode(),
        "root_path": "",
        "headers": [*framing, *(pair for pair in request.headers if pair[0] not in {b"host", b"content-length"})],
        "client": ("127.0.0.1", 0),
        "server": (base.hostname or "asgi", base.port or 80),
    }
