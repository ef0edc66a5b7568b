"""What one connection may hold of this process before anybody knows who it is: uvicorn's HTTP/1.1 protocol, bounded.

uvicorn bounds bodies (it stops reading, and the app has a limit of its own) but neither the head nor what stands
between the pieces of a body, and it waits for them without end. The layers come too late for that: there is no request
yet. So here

    a head over `reading.MAX_HEAD`      431, and the connection ends
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
from collections import deque
from typing import Any, Final, cast

from uvicorn.server import ServerState

from troyproxy.cli.exchange import Exchange, Serve
from troyproxy.cli.farewell import waits
from troyproxy.cli.framing import CHUNKS, TOO_LARGE
from troyproxy.cli.line import Line
from troyproxy.cli.reading import Reading
from troyproxy.cli.server_config import ServerConfig

LAST_S: Final = 1.0
"""How long a stopping server waits for the rest of a request that is on its way."""
MAX_AHEAD: Final = 8
"""Requests that may wait behind the one that is served. With more nothing is read, and a client's leaving not heard."""


class Connection(Reading):
    """One client connection."""

    def __init__(
        self,
        config: ServerConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._stopping, self._names = config.stopping, config.names
        self._outbox = config.outbox
        self._forwards = config.forwarded
        self._plain = config.requests or cast("Serve", self._forwards.app)
        self._served: Exchange | None = None
        """The latest request whose turn came."""
        self._ahead: deque[Exchange] = deque()
        """Requests that wait for their turn."""
        self._ending = False
        """The next request is the last."""
        self._quiet_since = 0.0
        self._timer: asyncio.TimerHandle | None = None

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

    def on_headers_complete(self) -> None:
        """Serve the request."""
        self._unused, self._in_head = 0, False
        before, version = self.cycle, self.parser.get_http_version()
        scope, modern = self._scope(version), version in CHUNKS
        if self._forwarded:
            self._forwards.read(scope)
        self.cycle = Exchange(
            self._line,
            scope,
            self._plain,
            keep_alive=modern and not self._ending and self.parser.should_keep_alive(),
            expects_continue=modern and self.expect_100_continue,
        )
        self._shown = 0
        if before is None or before.response_complete:
            self._serve(self.cycle)
            return
        self._ahead.append(self.cycle)
        if len(self._ahead) > MAX_AHEAD:
            self.flow.pause_reading()

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
