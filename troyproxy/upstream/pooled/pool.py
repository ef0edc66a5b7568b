"""The connections of one provider: at most so many, kept a while when idle, the youngest used first.

A slot is one connection, or the making of one. Who finds none waits in line; a slot or a connection that becomes free
goes to the first in line, never past it. State changes without waiting, so that a cancellation finds it whole.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque

from troyproxy.ports import UpstreamFailed
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.outbox import Outbox
from troyproxy.upstream.pooled.address import Origin
from troyproxy.upstream.pooled.connection import Connection
from troyproxy.upstream.pooled.opening import opened

Turn = asyncio.Future["Connection | None"]
"""A place in line: it brings a connection that became idle, or None for a free slot."""


class Pool:
    """The `Home` of connections to *origin*. Use it inside one event loop."""

    def __init__(
        self, origin: Origin, trust: ssl.SSLContext | None, *, max_connections: int, keepalive_s: float
    ) -> None:
        self.origin = origin
        self._trust, self._max, self._keepalive_s = trust, max_connections, keepalive_s
        self.loop = asyncio.get_running_loop()
        self.post = Outbox(self.loop).post
        self._used = 0
        self._idle: deque[Connection] = deque()
        self._line: deque[Turn] = deque()
        self._living: set[Connection] = set()
        """Every connection whose transport is not closed yet."""
        self._clocks: set[asyncio.Timeout] = set()
        """Of connections that are being made."""
        self._sweeper: asyncio.TimerHandle | None = None
        self.retired = False
        """Whether nothing is kept any more: the provider has moved, or the adapter is closed."""
        self.closed = False

    @property
    def used(self) -> int:
        """Slots that are taken."""
        return self._used

    def kept(self) -> Connection | None:
        """Return an idle connection that may still be used; the youngest."""
        now = self.loop.time()
        while self._idle:
            connection = self._idle.pop()
            connection.idle = False
            if connection.idle_until > now:
                return connection
            connection.close()
        return None

    async def fresh(self, until: float) -> Connection:
        """Return a new connection. Raises UpstreamFailed (SATURATED: no slot, TIMEOUT_CONNECT, CONNECT, TLS, RESET)."""
        while (connection := await self._turn(until, new=True)) is not None:
            connection.abort()
        return await self._make(until)

    async def connected(self, until: float) -> Connection:
        """Return one that became idle, or a new one; otherwise as `fresh`. *until* is on the event loop's clock."""
        return await self._turn(until, new=False) or await self._make(until)

    # --- slots ---

    async def _turn(self, until: float, *, new: bool) -> Connection | None:
        """Return None with a slot taken for a connection to be made, or a connection that became idle."""
        while not self.closed:
            if new and self._used >= self._max and self._idle:
                self._drop_oldest()
            if self._used < self._max:
                self._used += 1
                return None
            connection = await self._in_line(until)
            if connection is None or connection.open:
                return connection
        raise _closed()

    async def _in_line(self, until: float) -> Connection | None:
        turn: Turn = self.loop.create_future()
        self._line.append(turn)
        timer = self.loop.call_at(until, _give_up, turn)
        try:
            return await turn
        except (asyncio.CancelledError, UpstreamFailed):
            if turn in self._line:
                self._line.remove(turn)
            elif not turn.cancelled() and turn.exception() is None:
                self._pass_on(turn.result())
            raise
        finally:
            timer.cancel()

    def _pass_on(self, connection: Connection | None) -> None:
        """Give what became free to the first in line; else keep the connection, or the slot for whoever comes."""
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(connection)
                return
        if connection is None:
            self._used -= 1
        elif connection.open:
            self._keep(connection)

    # --- making ---

    async def _make(self, until: float) -> Connection:
        connection: Connection | None = None
        clock = asyncio.timeout_at(until)
        self._clocks.add(clock)
        try:
            async with clock:
                connection = await opened(self.origin, self._trust, lambda: Connection(self))
        except TimeoutError as exc:
            if self.closed:
                raise _closed() from exc
            raise UpstreamFailed(Fault.TIMEOUT_CONNECT, "no connection in time") from exc
        finally:
            self._clocks.discard(clock)
            if connection is None or not connection.adopt():
                self._pass_on(None)
        if self.closed:
            connection.abort()
        if not connection.open:
            raise UpstreamFailed(Fault.RESET, "the connection was closed at once")
        self._living.add(connection)
        connection.lost.add_done_callback(lambda _: self._living.discard(connection))
        return connection

    # --- what connections report ---

    def free(self, connection: Connection) -> None:
        """*connection* has served; the next in line has it, or it is kept."""
        self._pass_on(connection)

    def gone(self, connection: Connection) -> None:
        """*connection* ends: its slot is free."""
        if connection.idle:
            self._idle.remove(connection)
        self._pass_on(None)

    def _keep(self, connection: Connection) -> None:
        if self.retired:
            connection.close()
            return
        connection.idle = True
        connection.idle_until = self.loop.time() + self._keepalive_s
        self._idle.append(connection)
        if self._sweeper is None:
            self._sweeper = self.loop.call_at(connection.idle_until, self._sweep)

    def _sweep(self) -> None:
        now = self.loop.time()
        while self._idle and self._idle[0].idle_until <= now:
            self._drop_oldest()
        self._sweeper = self.loop.call_at(self._idle[0].idle_until, self._sweep) if self._idle else None

    # --- ends ---

    def retire(self) -> None:
        """Keep nothing any more; what is busy ends its exchange first."""
        self.retired = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        while self._idle:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        connection = self._idle.popleft()
        connection.idle = False
        connection.close()

    async def aclose(self) -> None:
        """Fail whoever waits, end what is busy, and wait until every transport is closed (at most a second)."""
        self.closed = True
        self.retire()
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_exception(_closed())
        for clock in tuple(self._clocks):
            if not clock.expired():
                clock.reschedule(self.loop.time())
        for connection in tuple(self._living):
            connection.fail("the adapter was closed")
        if self._living:
            await asyncio.wait({connection.lost for connection in self._living}, timeout=1.0)


def _give_up(turn: Turn) -> None:
    if not turn.done():
        turn.set_exception(UpstreamFailed(Fault.SATURATED, "no free connection in time"))


def _closed() -> UpstreamFailed:
    return UpstreamFailed(Fault.RESET, "the adapter was closed")
