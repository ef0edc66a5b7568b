"""What one connection may hold of this process before anybody knows who it is: uvicorn's HTTP/1.1 protocol, bounded.

uvicorn bounds bodies (it stops reading, and the app has a limit of its own) but neither the head nor what stands
between the pieces of a body, and it waits for them without end. The layers come too late for that: there is no request
yet. So here

    a head over `MAX_HEAD`              431, and the connection ends
    trailers, chunk extensions over it  the connection ends
    silence while nothing is served     the connection ends after the keep-alive time, which a head has in all
    the offer of another protocol       declined, and the request is read as any other
    a client that does not read         its connection ends all the same, and what it left is dropped
    a client that leaves                the request that is being served hears of it, whatever was sent behind it
    the end of the server               what a client has sent by then is served, and nothing after it

and trailers are read but never become headers: a request that is being served must not change under its reader, nor
may anything be said behind a body that a proxy in front looks for before it (RFC 9110, section 6.5.1).
"""

from __future__ import annotations

import asyncio
import urllib.parse
from collections import deque
from typing import Any, Final, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from troyproxy.cli.declined import behind
from troyproxy.cli.exchange import Exchange, Serve
from troyproxy.cli.farewell import waits
from troyproxy.cli.forwarded import PREFIX
from troyproxy.cli.line import Line
from troyproxy.cli.server_config import ServerConfig
from troyproxy.proxy.call import Scope

MAX_HEAD: Final = 1 << 21
"""Bytes that may come without the end of a head or a byte of a body. A wrong key of a megabyte is still told that."""
MAX_BODY: Final = 1 << 18
"""Bytes of a body that may wait for the app; then nothing is read until it takes them. Most are never stopped."""
LAST_S: Final = 1.0
"""How long a stopping server waits for the rest of a request that is on its way."""
MAX_AHEAD: Final = 8
"""Requests that may wait behind the one that is served. With more nothing is read, and a client's leaving not heard."""
_BODY: Final = b"the head of the request is too large"
TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_BODY), _BODY)
)


class Connection(HttpToolsProtocol):
    """One client connection."""

    cycle: Exchange  # type: ignore[assignment]  # stands in the place of uvicorn's own
    """The latest request that was read; None before the first one."""

    def __init__(
        self,
        config: ServerConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._stopping, self._names, self._lowered = config.stopping, config.names, config.lowered
        self._outbox = config.outbox
        self._forwards = config.forwarded
        self._plain = config.requests or cast("Serve", self._forwards.app)
        self._versions = {"version": self.asgi_version, "spec_version": "2.3"}
        self._unused = 0
        """Bytes since something came of them."""
        self._in_head = self._forwarded = False
        self._served: Exchange | None = None
        """The latest request whose turn came."""
        self._ahead: deque[Exchange] = deque()
        """Requests that wait for their turn."""
        self._ending = False
        """The next request is the last."""
        self._quiet_since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._url: bytes | None = None
        self._target = ("", b"", b"")

    # What the network tells.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Wait for the first request no longer than for any other."""
        super().connection_made(transport)
        shared = self._names, self._stopping, self._outbox
        self._line = Line(transport, self.flow, self.loop, self.logger, self.server_state, *shared, self._complete)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is served, also when others wait behind it."""
        if self._served is not None:
            self._served.lost()
        self._ahead.clear()
        self.connections.discard(self)
        self.flow.resume_writing()
        if self._timer is not None:
            self._timer.cancel()
        if exc is None:
            self.transport.close()
        # What leads back here would keep all of it for the collector.
        self._line.complete, self._timer = (lambda: None), None
        self.parser = self.cycle = self._served = None  # type: ignore[assignment]  # the first as uvicorn has it

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        self._unused += len(data)
        begun = self._in_head
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self._malformed()
        except httptools.HttpParserUpgrade as offer:
            self._decline(memoryview(data)[offer.args[0] :])
        if self._unused > MAX_HEAD:
            self._refuse()
        elif not begun and (self.cycle is None or self.cycle.response_complete):  # a head has one time for all of it
            self._wait()

    def _decline(self, rest: memoryview) -> None:
        """Go on with a request that offers another protocol; *rest* came behind its head."""
        while True:
            self.cycle.goes_on()
            self.parser = behind(self, self.headers)
            try:
                self.parser.feed_data(rest)
            except httptools.HttpParserError:
                self._malformed()
            except httptools.HttpParserUpgrade as offer:
                rest = rest[offer.args[0] :]
                continue
            return

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._unused, self._in_head = 0, True
        self._forwarded = self.expect_100_continue = False
        self.url, self.headers = b"", []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a trailer is dropped."""
        if self._in_head:
            name = self._lowered[name]
            self.headers.append((name, value))
            if name == b"expect":
                self.expect_100_continue = value.lower() == b"100-continue"
            elif name[:12] == PREFIX:
                self._forwarded = True

    def on_headers_complete(self) -> None:
        """Serve the request."""
        self._unused, self._in_head = 0, False
        before, version = self.cycle, self.parser.get_http_version()
        scope = self._scope(version)
        if self._forwarded:
            self._forwards.read(scope)
        self.cycle = Exchange(
            self._line,
            scope,
            self._plain,
            keep_alive=not self._ending and version != "1.0" and self.parser.should_keep_alive(),
            expects_continue=self.expect_100_continue,
        )
        if before is None or before.response_complete:
            self._serve(self.cycle)
            return
        self._ahead.append(self.cycle)
        if len(self._ahead) > MAX_AHEAD:
            self.flow.pause_reading()

    def _scope(self, version: str) -> Scope:
        path, raw_path, query = self._target if self.url == self._url else self._new_target()
        return {
            "type": "http",
            "asgi": self._versions,
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "method": self.parser.get_method().decode("ascii"),
            "root_path": self.root_path,
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
            "headers": self.headers,
            "state": self.app_state.copy(),
        }

    def _new_target(self) -> tuple[str, bytes, bytes]:
        """Return what the request's URL says. Most clients ask for the same one again and again."""
        parsed = httptools.parse_url(self.url)
        path = urllib.parse.unquote(parsed.path.decode("ascii"))
        self._target = self.root_path + path, self.root_path.encode("ascii") + parsed.path, parsed.query or b""
        self._url = self.url
        return self._target

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._unused = 0
        if not self.cycle.response_complete and self.cycle.take(body) > MAX_BODY:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        """End a request."""
        if not self.cycle.response_complete:
            self.cycle.whole()

    # What becomes of it.

    def pause_writing(self) -> None:
        """Let the answer wait: its client does not read."""
        super().pause_writing()
        if self._served is not None:
            self._served.paused = True

    def resume_writing(self) -> None:
        """Let it go on."""
        super().resume_writing()
        if self._served is not None:
            self._served.paused = False

    def _complete(self) -> None:
        """Serve the next request, or wait for it."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self._ahead:
            self._serve(self._ahead.popleft())
        else:
            self._wait()

    def shutdown(self) -> None:
        """End after what is served now. Without that: at once, but for a client whose request may be on its way."""
        if not self._idle:
            self.cycle.keep_alive = False
        elif self._awaited:
            self._ending = True
            self.loop.call_later(LAST_S, self._end)
        else:
            self._leave()

    @property
    def _awaited(self) -> bool:
        """Whether a request is on its way, as far as can be known: begun, or with the system, or the first one."""
        return self.cycle is None or self._in_head or waits(self.transport)

    def _end(self) -> None:
        if self._idle:
            self._leave()

    def _leave(self) -> None:
        self._line.leave()

    def _serve(self, cycle: Exchange) -> None:
        self._served = cycle
        cycle.start()

    @property
    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        """Close the connection unless something comes, or begins to be served, within the keep-alive time.

        There is one timer; it looks again later when something came meanwhile.
        """
        self._quiet_since = self.loop.time()
        if self._timer is None:
            self._timer = self.loop.call_later(self.timeout_keep_alive, self._look)

    def _look(self) -> None:
        self._timer = None
        left_s = self._quiet_since + self.timeout_keep_alive - self.loop.time()
        if self._idle and left_s <= 0:
            self._leave()
        elif self._idle:
            self._timer = self.loop.call_later(left_s, self._look)

    def _malformed(self) -> None:
        said, served = "Invalid HTTP request received.", self._served
        self.logger.warning(said)
        if served is None or served.response_complete or not served.started:
            self._outbox.flush()
            self.send_400_response(said)
        self._leave()  # into an answer that has begun nothing is said

    def _refuse(self) -> None:
        if self.transport.is_closing():
            return
        if self._in_head and self._idle:
            self._outbox.post(self._line.write, TOO_LARGE)
        self._leave()
