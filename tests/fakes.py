"""Fakes of the seams in `troyproxy/ports/`, in the order of that page; those of the database are in `fake_store`,
that of shared limits is in `fake_limits`, that of shared attempts in `fake_attempts`.

They touch nothing outside.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.errors import StoreUnavailable
from troyproxy.ports import AutoPlan, Ear, Failover, Headers, News, UpstreamFailed, UpstreamRequest, UpstreamResponse
from troyproxy.ports.upstream import gathered
from troyproxy.resilience.events import Event


class FakeClock:
    """Time that only the test moves.

    `sleep` moves it by itself and returns at once, which suits code that waits and goes on. With ``manual=True`` a
    sleeper waits until `advance` has moved the time past its deadline, which suits code that races a wait against
    something else.
    """

    def __init__(self, now: float = 1_800_000_000.0, *, monotonic: float = 1_000.0, manual: bool = False) -> None:
        self._now = now
        self._monotonic = monotonic
        self._manual = manual
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []
        self.slept: list[float] = []

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if not self._manual:
            self.move(seconds)
            await asyncio.sleep(0)
            return
        due = asyncio.Event()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._order), due))
        await due.wait()

    def move(self, seconds: float) -> None:
        """Move the time without waking anybody."""
        self._now += seconds
        self._monotonic += seconds

    async def advance(self, seconds: float) -> None:
        """Move the time by *seconds*, waking each sleeper at its moment, earliest first."""
        until = self._monotonic + seconds
        while self._sleepers and self._sleepers[0][0] <= until:
            deadline, _, due = heapq.heappop(self._sleepers)
            self.move(max(0.0, deadline - self._monotonic))
            due.set()
            await settle()
        self.move(until - self._monotonic)
        await settle()


async def settle(rounds: int = 20) -> None:
    """Let every task that can run do so, without time passing."""
    for _ in range(rounds):
        await asyncio.sleep(0)


Step = bytes | float | asyncio.Event | UpstreamFailed
"""Of a scripted answer: a chunk, a wait in seconds, a wait until the test says so, a fault."""


class FakeResponse:
    """A scripted `UpstreamResponse`; it writes down whether it was read and closed."""

    whole: bytes | None = None

    def __init__(self, reply: Reply) -> None:
        self.status, self.headers = reply.status, reply.headers
        self._steps = list(reply.body)
        self._close_s = reply.close_s
        self._ear: Ear | None = None
        self._body = self._played()
        self.taken = self.heard = 0
        self.closed = False

    def chunks(self) -> AsyncIterator[bytes]:
        return self._body

    async def read(self, limit: int, into: list[bytes], /) -> bool:
        return await gathered(self._body, limit, into)

    async def _played(self) -> AsyncIterator[bytes]:
        for step in self._steps:
            self.taken += 1
            if not isinstance(step, bytes):
                await _play(step)
            elif self._ear is not None and self._ear(step):
                self.heard += 1
            else:
                yield step

    def listen(self, ear: Ear, /) -> None:
        self._ear = ear

    async def aclose(self) -> None:
        self.closed = True
        if self._close_s:
            await asyncio.sleep(self._close_s)


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted answer. *before* happens before its head; *close_s* is what closing takes."""

    status: int = 200
    body: Sequence[Step] = ()
    headers: Headers = ((b"content-type", b"application/json"),)
    before: Sequence[Step] = ()
    close_s: float = 0.0


class FakeUpstream:
    """A scripted `Upstream`: provider id → its answers in order. Running out of them fails the test."""

    def __init__(self, **script: Iterable[Reply]) -> None:
        self._script = {provider: list(replies) for provider, replies in script.items()}
        self.requests: list[UpstreamRequest] = []
        self.responses: list[FakeResponse] = []
        self.closed = False

    def add(self, provider: str, *replies: Reply) -> None:
        self._script.setdefault(provider, []).extend(replies)

    @property
    def asked(self) -> list[str]:
        """Return the provider ids in the order in which they were asked."""
        return [request.provider.id for request in self.requests]

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        self.requests.append(request)
        replies = self._script.get(request.provider.id)
        assert replies, f"{request.provider.id} was asked once more than the script knows"
        reply = replies.pop(0)
        for step in reply.before:
            await _play(step)
        response = FakeResponse(reply)
        self.responses.append(response)
        return response

    async def aclose(self) -> None:
        self.closed = True


async def _play(step: Step) -> None:
    if isinstance(step, UpstreamFailed):
        raise step
    if isinstance(step, asyncio.Event):
        await step.wait()
    elif isinstance(step, float):
        await asyncio.sleep(step)


class FakeEventLog:
    """A journal in memory. *earlier* is what a run before has written."""

    def __init__(self, *earlier: Event) -> None:
        self.earlier = earlier
        self.events: list[Event] = []

    def append(self, event: Event) -> None:
        self.events.append(event)

    async def replay(self) -> Sequence[Event]:
        return self.earlier


class FakeStateMirror:
    """One instance's way to a shared place in memory; *beside* is another's to the same place.

    *down*: this instance cannot reach it. `opened`, `closed` and `reads` count, `told` is what was said.
    """

    def __init__(self, beside: FakeStateMirror | None = None) -> None:
        self.down = False
        self.opened = self.closed = self.reads = 0
        self.kept: set[Event] = set() if beside is None else beside.kept
        self.told: list[News] = []
        self.news: asyncio.Queue[News] = asyncio.Queue()
        self._mine: set[Event] = set()
        self._all: list[FakeStateMirror] = [] if beside is None else beside._all
        self._all.append(self)

    def _check(self) -> None:
        if self.down:
            raise StoreUnavailable("down")

    async def open(self) -> None:
        self._check()
        self.opened += 1

    async def read(self, now: float) -> Sequence[Event]:
        self._check()
        self.reads += 1
        return [event for event in self.kept if getattr(event, "until", now + 1) > now]

    async def push(self, kept: Sequence[Event], *, now: float, news: News | None = None) -> None:
        del now
        self._check()
        added = [event for event in kept if event not in self.kept]
        gone = self._mine - set(kept)
        self._mine = set(kept)
        self.kept.difference_update(gone)
        self.kept.update(added)
        said = News((*added, *(news.events if news else ())), news.revision if news else None)
        if said != News():
            self.told.append(said)
            for other in self._all:
                if other is not self and not other.down:
                    other.news.put_nowait(said)

    async def listen(self) -> News:
        self._check()
        return await self.news.get()

    async def close(self) -> None:
        self.closed += 1


class FakeUsageSink:
    """Keeps the rows."""

    def __init__(self) -> None:
        self.rows: list[UsageRow] = []

    def record(self, row: UsageRow) -> None:
        self.rows.append(row)


class FakeObserver:
    """Writes down what it is told, as (name, arguments)."""

    def __init__(self) -> None:
        self.told: list[tuple[str, tuple[object, ...]]] = []

    def of(self, name: str) -> list[tuple[object, ...]]:
        """Return the arguments of every call of *name*."""
        return [arguments for told, arguments in self.told if told == name]

    def request_started(self) -> None:
        self.told.append(("request_started", ()))

    def request_finished(self, row: UsageRow) -> None:
        self.told.append(("request_finished", (row,)))

    def attempt_finished(self, attempt: AttemptRecord) -> None:
        self.told.append(("attempt_finished", (attempt,)))

    def failed_over(self, failover: Failover) -> None:
        self.told.append(("failed_over", (failover,)))

    def skipped(self, provider: str, reason: str) -> None:
        self.told.append(("skipped", (provider, str(reason))))

    def circuit_changed(self, provider: str, model: str, before: str, after: str) -> None:
        self.told.append(("circuit_changed", (provider, model, before, after)))

    def inflight_changed(self, provider: str, account: str, count: int) -> None:
        self.told.append(("inflight_changed", (provider, account, count)))

    def leaked(self, provider: str, model: str, leak_format: str, action: str) -> None:
        self.told.append(("leaked", (provider, model, leak_format, action)))

    def adapted(self, provider: str, param: str, action: str) -> None:
        self.told.append(("adapted", (provider, param, action)))

    def auto_planned(self, plan: AutoPlan) -> None:
        self.told.append(("auto_planned", (plan,)))

    def auto_excluded(self, provider: str, model: str, reason: str) -> None:
        self.told.append(("auto_excluded", (provider, model, reason)))

    def events_seen(self, provider: str, model: str, gaps_s: Sequence[float]) -> None:
        self.told.append(("events_seen", (provider, model, tuple(gaps_s))))

    def trace(self, request_id: str, lines: Sequence[str]) -> None:
        self.told.append(("trace", (request_id, tuple(lines))))
