"""A client of live streams: it checks that each arrived whole, and notes how late each event came."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, cast

import httptools

from tests.bench.client import request_to, share_of
from tests.bench.servers import Target
from tests.bench.shapes import BESIDE

_CONTENT: Final = b'"content":"'
LONGEST_S: Final = 60.0


@dataclass(slots=True)
class Streamed:
    """What a run of streams saw. *cpu_s* as in `Load`; *late_ms*: from the upstream's write to the client's read."""

    events: int = 0
    whole: int = 0
    broken: list[str] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)
    gaps_ms: list[float] = field(default_factory=list)
    """From one event of a stream to its next, at the client. Both begin when all streams have begun."""
    cpu_s: float | None = None

    @property
    def cpu_us(self) -> float | None:
        """Microseconds of processor time for one event."""
        return None if self.cpu_s is None else self.cpu_s / max(1, self.events) * 1e6

    @property
    def gap_spread(self) -> float:
        """The 99th percentile of the gaps over their median."""
        return share_of(self.gaps_ms, 0.99) / (share_of(self.gaps_ms, 0.5) or 1.0)

    @property
    def p50_ms(self) -> float:
        return share_of(self.late_ms, 0.5)

    @property
    def p99_ms(self) -> float:
        return share_of(self.late_ms, 0.99)


class Listener(asyncio.Protocol):
    """One connection with one stream after the other, *count* in all; each must have *moments* of them, in order."""

    def __init__(self, request: bytes, run: Streamed, moments: int, count: int) -> None:
        self._request, self._run, self._moments, self._left = request, run, moments, count
        self._transport: asyncio.WriteTransport
        self._parser: httptools.HttpResponseParser
        self._rest, self._at, self._ended, self._last = b"", 0, False, 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._run.broken.append(f"the connection ended after event {self._at}: {exc}")
            self.done.set_result(None)

    def _ask(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._rest, self._at, self._ended, self._last = b"", 0, False, 0.0
        self._left -= 1
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        """Take what the parser found of the body."""
        *events, self._rest = (self._rest + body).split(b"\n\n")
        now = time.monotonic()
        for event in events:
            self._take(event, now)

    def _take(self, event: bytes, now: float) -> None:
        self._run.events += 1
        begin = event.find(_CONTENT) + len(_CONTENT)
        if begin > len(_CONTENT) and event[begin : begin + 1] != b'"':
            number, _, sent = event[begin : event.index(b'"', begin)].partition(b" ")
            if int(number) == self._at:
                self._at += 1
            self._run.late_ms.append((now - float(sent)) * 1e3)
            if self._last:
                self._run.gaps_ms.append((now - self._last) * 1e3)
            self._last = now
        elif event.endswith(b"[DONE]"):
            self._ended = True

    def on_message_complete(self) -> None:
        """Note whether the stream arrived whole, and ask for the next."""
        status = self._parser.get_status_code()
        if status == 200 and self._at == self._moments and self._ended and not self._rest:
            self._run.whole += 1
        else:
            self._run.broken.append(f"status {status}, {self._at} of {self._moments} events, end: {self._ended}")
        if self._left:
            self._ask()
        elif not self.done.done():
            self.done.set_result(None)
            self._transport.close()


@contextmanager
def _uncollected() -> Iterator[None]:
    """No pause of ours is taken for one of the server's."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@dataclass(frozen=True, slots=True)
class Plan:
    """*clients* with *each* streams one after the other; they begin within *spread_s*."""

    clients: int
    each: int
    moments: int
    spread_s: float = 0.3

    @property
    def events(self) -> int:
        """How many events arrive when all goes well."""
        return self.clients * self.each * (self.moments + BESIDE)


async def listen(target: Target, body: bytes, plan: Plan) -> Streamed:
    """Return what *plan* saw at *target*. Raises TimeoutError after a minute."""
    run, request, loop = Streamed(), request_to(target, body), asyncio.get_running_loop()
    before = target.cpu_s()
    with _uncollected():
        async with asyncio.timeout(LONGEST_S):
            opened = []
            for _ in range(plan.clients):
                made = lambda: Listener(request, run, plan.moments, plan.each)  # noqa: E731 -- one line, used at once
                opened.append((await loop.create_connection(made, "127.0.0.1", target.port))[1])
                await asyncio.sleep(plan.spread_s / plan.clients)
            run.late_ms.clear()
            run.gaps_ms.clear()
            await asyncio.gather(*(listener.done for listener in opened))
    after = target.cpu_s()
    run.cpu_s = after - before if before is not None and after is not None else None
    return run
