"""One request and its answer on a connection of our server, in the place of uvicorn's cycle.

What an app sees is what uvicorn shows it, errors included. Other than there

    the app     runs as a task of its own, with nothing around it that is resumed with every event of a stream
    the head    waits for the first part of the body, so that a small answer is one write; an app that sends nothing
                behind its head in the same turn of the event loop gets it out alone
    a leaving   is told to whoever watches the `Peer` in the scope, without a task that listens at `receive`
    the end     of a server is told by ``connection: close`` on every answer: a proxy in front moves on

The request's body is `inbox`'s affair. It knows nothing of reading from the network, nor of what is served next: that
is `protocol`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from troyproxy.cli import framing
from troyproxy.cli.inbox import Inbox
from troyproxy.cli.line import Line
from troyproxy.proxy.answers import PEER, Message, Receive, Send
from troyproxy.proxy.call import Scope

Serve = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]
"""An app whose call is a coroutine, as one that is written with ``async def`` has it."""


class Exchange(Inbox):
    """Serves one request by `start`. It is the `Peer` in its scope."""

    def __init__(self, line: Line, scope: Scope, app: Serve, *, keep_alive: bool, expects_continue: bool) -> None:
        self._line, self._app, self._transport, self._flow = line, app, line.transport, line.flow
        self._scope = scope
        scope["extensions"] = {PEER: self}
        self.keep_alive, self._waits = keep_alive, expects_continue
        self.paused = False
        """Whether the next `send` would wait."""
        self.started = False
        self._bare = scope["method"] == "HEAD"
        self._closing, self._held = False, b""
        self._left = 0 if keep_alive or scope["http_version"] in framing.CHUNKS else framing.ENDLESS
        self._chunked: bool | None = None
        # For `put`, which is called with each event: what the class has, or a method, is looked up slower.
        self.disconnected, self._write = False, line.write
        self._watcher: Callable[[], None] | None = None

    def start(self) -> None:
        """Run the app."""
        self.paused = self._flow.write_paused
        task = self._line.loop.create_task(self._app(self._scope, self.receive, self.send))
        self._line.state.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """The app has ended: an answer that is not complete by now never will be."""
        self._line.state.tasks.discard(task)
        self._scope = {}  # it leads here, and would keep the request for the collector
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None:
            self._line.logger.error("Exception in ASGI application\n", exc_info=error)
        elif self.response_complete or self.disconnected:
            return
        else:
            what = "completing" if self.started else "starting"
            self._line.logger.error("ASGI callable returned without %s response.", what)
        if self.started:
            self._line.leave()
        elif not self.disconnected:
            self._begin(500, framing.FAILED_HEADERS)
            self._go_on(framing.FAILED, more=False)

    # What the connection tells.

    def lost(self) -> None:
        """The client has left."""
        if not self.response_complete:
            self.disconnected = True
            self._leave()
        self._tell()

    # What the app sees, as the peer of the request.

    @property
    def unsent(self) -> int:
        """Bytes of what was written that the system has not taken."""
        return self._transport.get_write_buffer_size()

    def watch(self, callback: Callable[[], None], /) -> None:
        """Call *callback* once when the client leaves."""
        self._watcher = callback
        if self.disconnected:
            self._line.loop.call_soon(self._leave)

    def unwatch(self) -> None:
        """Call nobody."""
        self._watcher = None

    def drop(self) -> None:
        """End the connection, unless the answer is complete or the client has left: then it ends as it does."""
        if self._over:
            return
        self.disconnected = True
        if self._left == framing.ENDLESS:  # an orderly end would be the answer's own
            self._line.outbox.flush()
            self._transport.abort()
        else:
            self._line.leave()

    def _leave(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher()

    async def send(self, message: Message) -> None:
        """Send a part of the answer. Raises RuntimeError for one that has no place here."""
        if self.paused and not self.disconnected:
            await self._flow.drain()
        if self.disconnected:
            return
        kind = message["type"]
        if kind == "http.response.body" and self.started and not self.response_complete:
            body = message["body"] if "body" in message else b""  # noqa: SIM401 -- no call with each event
            more = "more_body" in message and message["more_body"]
            if more and body:
                self.put(body)
            else:
                self._go_on(body, more=more)
        elif kind == "http.response.start" and not self.started:
            self._begin(message["status"], message.get("headers", ()))
        elif self.response_complete:
            raise RuntimeError(f"Unexpected ASGI message '{kind}' sent, after response already completed.")
        else:
            expected = "http.response.body" if self.started else "http.response.start"
            raise RuntimeError(f"Expected ASGI message '{expected}', but got '{kind}'.")

    def owns(self, send: Send, /) -> bool:
        """Whether *send* is ours."""
        return send == self.send

    def put(self, part: bytes, /) -> None:
        """Send a *part* of an answer that goes on."""
        if self._chunked and not (self._held or self._bare or self.disconnected):
            self._line.outbox.post(self._write, b"%x\r\n%b\r\n" % (len(part), part))
        elif not self.disconnected:
            self._go_on(part, more=True)

    def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.started, self._waits = True, False
        line = self._line
        lines, names = [STATUS_LINE[status], line.own_lines()], line.names
        for name, value in headers:
            begun = names[name]
            lines += (begun, value, b"\r\n")
            if begun in framing.FRAMING:
                self._frame(begun, value)
        values = b"".join(lines[3::3])
        if len(values.translate(None, framing.UNFIT)) != len(values):
            raise RuntimeError("Invalid HTTP header value.")
        if line.stopping():
            self.keep_alive = False
        if not (self.keep_alive or self._closing):
            lines.append(framing.CLOSE)
        if self._chunked is None and not (self._left or self._bare) and status not in framing.BODILESS:
            self._chunked = True
            lines.append(framing.CHUNKED)
        lines.append(b"\r\n")
        self._held = b"".join(lines)
        line.loop.call_soon(self._flush)

    def _frame(self, begun: bytes, value: bytes) -> None:
        """Take what a header says of where the answer ends."""
        if begun == framing.LENGTH and self._chunked is None:
            self._left, self._chunked = int(value), False
        elif begun == framing.CODING and value.lower() == b"chunked":
            self._left, self._chunked = 0, True
        elif begun == framing.CONNECTION and b"close" in [token.strip() for token in value.lower().split(b",")]:
            self.keep_alive, self._closing = False, True

    def _go_on(self, body: bytes, *, more: bool) -> None:
        if self._bare:
            self._left, body = 0, b""
        elif self._chunked:
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body = body if more else body + framing.END
        elif len(body) > self._left:
            raise RuntimeError("Response content longer than Content-Length")
        else:
            self._left -= len(body)
        if self._held:
            self._begin_with(body)
        elif body:
            self._put(body)
        if not more:
            self._complete()

    def _begin_with(self, body: bytes) -> None:
        """Let the head go, and *body* with it: a large one is not copied."""
        head, self._held = self._held, b""
        if len(body) > framing.LARGE:
            self._line.outbox.flush()
            self._transport.writelines((head, body))
        else:
            self._put(head + body)

    def _put(self, data: bytes) -> None:
        """Write *data* with what others write in this turn of the event loop."""
        line = self._line
        line.outbox.post(line.write, data)

    def _complete(self) -> None:
        if self._left not in framing.ENDS:
            raise RuntimeError("Response content shorter than Content-Length")
        self.response_complete = True
        self._tell()
        if not self.keep_alive:
            self._line.leave()
        self._line.complete()

    def _flush(self) -> None:
        """Let the head go alone."""
        if self._held:
            head, self._held = self._held, b""
            if not self.disconnected:
                self._put(head)
