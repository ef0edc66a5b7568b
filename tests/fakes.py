"""Fakes of the seams in `troyproxy/ports.py`, in the order of that page. They touch nothing outside."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.catalog.combos import Combo
from troyproxy.catalog.keys import Key
from troyproxy.catalog.models import Model
from troyproxy.catalog.providers import Account
from troyproxy.errors import Conflict, NotFound, PreconditionFailed, StoreUnavailable
from troyproxy.ports import Failover, Headers, UpstreamFailed, UpstreamRequest, UpstreamResponse
from troyproxy.resilience.events import Event

_T = TypeVar("_T")


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

    def __init__(self, reply: Reply) -> None:
        self.status, self.headers = reply.status, reply.headers
        self._steps = list(reply.body)
        self._close_s = reply.close_s
        self.read = 0
        self.closed = False

    async def chunks(self) -> AsyncIterator[bytes]:
        for step in self._steps:
            self.read += 1
            if isinstance(step, bytes):
                yield step
            else:
                await _play(step)

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

    def events_seen(self, provider: str, model: str, gaps_s: Sequence[float]) -> None:
        self.told.append(("events_seen", (provider, model, tuple(gaps_s))))

    def trace(self, request_id: str, lines: Sequence[str]) -> None:
        self.told.append(("trace", (request_id, tuple(lines))))


class FakeCombos:
    """Combos in memory."""

    def __init__(self) -> None:
        self.held: dict[str, Combo] = {}

    async def list(self) -> list[Combo]:
        return list(self.held.values())

    async def add(self, combo: Combo) -> Combo:
        taken = {name.lower() for held in self.held.values() for name in (held.id, held.name)}
        if {combo.id.lower(), combo.name.lower()} & taken:
            raise Conflict("taken")
        self.held[combo.id] = combo
        return combo

    async def replace(self, combo: Combo, *, expected_version: int | None = None) -> Combo:
        stored = _found(self.held, combo.id)
        if expected_version not in {None, stored.version}:
            raise PreconditionFailed("changed")
        self.held[combo.id] = replace(combo, version=stored.version + 1)
        return self.held[combo.id]

    async def remove(self, combo_id: str) -> None:
        _found(self.held, combo_id)
        del self.held[combo_id]


class FakeConnections:
    """Accounts in memory."""

    def __init__(self) -> None:
        self.held: dict[str, Account] = {}

    async def list(self) -> list[Account]:
        return list(self.held.values())

    async def add(self, account: Account) -> Account:
        if account.id in self.held:
            raise Conflict("taken")
        self.held[account.id] = account
        return account

    async def remove(self, account_id: str) -> None:
        _found(self.held, account_id)
        del self.held[account_id]


class FakeKeys:
    """Client keys in memory; `lookups` counts what would be database work."""

    def __init__(self, *keys: Key) -> None:
        self.held = {key.id: key for key in keys}
        self.lookups = 0

    async def list(self) -> list[Key]:
        return list(self.held.values())

    async def find(self, digest: bytes) -> Key | None:
        self.lookups += 1
        return next((key for key in self.held.values() if key.digest == digest), None)

    async def add(self, key: Key) -> Key:
        if any(held.name == key.name for held in self.held.values()):
            raise Conflict("taken")
        self.held[key.id] = key
        return key

    async def revoke(self, key_id: str, *, at: float) -> Key:
        self.held[key_id] = replace(_found(self.held, key_id), revoked_at=at)
        return self.held[key_id]


class FakeModels:
    """Overrides in memory."""

    def __init__(self) -> None:
        self.held: dict[str, Model] = {}

    async def list(self) -> dict[str, Model]:
        return dict(self.held)

    async def put(self, spec: str, model: Model) -> None:
        self.held[spec] = model

    async def remove(self, spec: str) -> None:
        _found(self.held, spec)
        del self.held[spec]


class FakeRequests:
    """Usage rows, read back from a sink."""

    def __init__(self, sink: FakeUsageSink) -> None:
        self._sink = sink

    async def find(self, request_id: str) -> UsageRow | None:
        return next((row for row in self._sink.rows if row.request_id == request_id), None)

    async def recent(self, *, limit: int = 50) -> list[UsageRow]:
        return self._sink.rows[: -limit - 1 : -1]


class FakeControl:
    """The control row. *down*: the database cannot be read."""

    def __init__(self) -> None:
        self.at = 0
        self.down = False

    async def revision(self) -> int:
        if self.down:
            raise StoreUnavailable("down")
        return self.at

    async def bump(self) -> int:
        self.at += 1
        return self.at


class FakeStore:
    """A database in memory."""

    def __init__(self, *earlier: Event) -> None:
        self.combos, self.connections, self.keys, self.models = FakeCombos(), FakeConnections(), FakeKeys(), FakeModels()
        self.events, self.usage, self.control = FakeEventLog(*earlier), FakeUsageSink(), FakeControl()
        self.requests = FakeRequests(self.usage)
        self.up = True
        self.queue_depths: Mapping[str, int] = {"events": 0, "usage": 0}
        self.dropped: Mapping[str, int] = {"events": 0, "usage": 0}
        self.running: list[str] = []
        """``start`` and ``stop``, as they came."""

    async def start(self) -> None:
        self.running.append("start")

    async def stop(self) -> None:
        self.running.append("stop")


def _found(held: Mapping[str, _T], name: str) -> _T:
    if name not in held:
        raise NotFound(name)
    return held[name]
