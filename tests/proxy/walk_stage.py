"""The real walk with a `Book` listening: every call of the upstream and every outcome is told to the model."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from tests.asgi import DISCONNECT, When
from tests.fakes import FakeEventLog, FakeObserver, FakeUpstream
from tests.proxy.rig import Rig, Served, combo, provider
from tests.proxy.walk_answers import Answer, reply_to
from tests.proxy.walk_compare import differences
from tests.proxy.walk_model import FLOOR, RATIO, WALK_S, Book
from tests.proxy.walk_things import Flight, Pair
from tests.virtual import LoopClock
from troyproxy.accounting.records import AttemptRecord
from troyproxy.errors import AllUnavailable
from troyproxy.ports import UpstreamRequest, UpstreamResponse
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.outcome import Target
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.proxy.retries import Retries
from troyproxy.proxy.walk import Walk
from troyproxy.resilience.classify import Verdict
from troyproxy.resilience.events import Cleared, from_record, to_record
from troyproxy.resilience.health import HealthPolicy
from troyproxy.resilience.retry_budget import WINDOW_S, RetryPolicy

MEMBERS: Final = ("alpha/m1", "beta/m2", "alpha/m3")
CHAINS: Final = {"small": MEMBERS, "turns": MEMBERS, "alpha/m1": ("alpha/m1",), "beta/m2": ("beta/m2",)}
PARTS: Final = (
    provider("alpha", "m1", "m3", accounts="AB"),
    provider("beta", "m2", accounts="AB"),
    combo("small", *MEMBERS),
    combo("turns", *MEMBERS, strategy="round-robin"),
)
POLICY: Final = WalkPolicy(upstream_timeout_s=20.0, stream_idle_s=20.0, first_output_s=20.0, request_timeout_s=WALK_S)
FLIGHT: ContextVar[Flight] = ContextVar("FLIGHT")
"""The request on whose behalf something happens."""


def pairs_of(model: str) -> tuple[Pair, ...]:
    """Return what a request for *model* may be sent to."""
    members = [member.split("/") for member in CHAINS[model]]
    return tuple(Pair(owner, f"{owner}#{letter}", name) for owner, name in members for letter in "AB")


class WatchedObserver(FakeObserver):
    """Knows circuits and places from what it is told, as the metrics do."""

    def __init__(self, book: Book) -> None:
        super().__init__()
        self.book = book
        self.circuits: dict[tuple[str, str], str] = {}
        self.inflight: dict[str, int] = {}

    def circuit_changed(self, provider: str, model: str, before: str, after: str) -> None:
        told = self.circuits.get((provider, model), "closed")
        by_time = (told, before) == ("open", "half_open")
        self.book.check(told == before or by_time, f"{provider}/{model}: it turned from {before}, {told} was told")
        self.circuits[provider, model] = after

    def inflight_changed(self, provider: str, account: str, count: int) -> None:
        self.inflight[f"{provider}#{account}"] = count

    def adapted(self, provider: str, param: str, action: str) -> None:
        super().adapted(provider, param, action)
        if action == "learned":
            self.book.learns(FLIGHT.get(), LoopClock().now())

    def attempt_finished(self, attempt: AttemptRecord) -> None:
        super().attempt_finished(attempt)
        FLIGHT.get().attempts[-1].over = True


class WatchedUpstream(FakeUpstream):
    """Answers as the flight's own list says."""

    def __init__(self, book: Book) -> None:
        super().__init__()
        self.book = book

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        flight, body = FLIGHT.get(), json.loads(request.body)
        letter = (
            dict(request.headers)[b"authorization"].split(b"-")[3].decode()
        )  # of Bearer sk-up-<provider>-<letter>-…
        pair = Pair(request.provider.id, f"{request.provider.id}#{letter}", body["model"])
        seen = self.book.sends(flight, pair, LoopClock().now(), asked_usage="stream_options" in body)
        self.add(pair.provider, reply_to(seen.answer, seen.wait_s, streamed=flight.stream))
        return await super().send(request)


class WatchedHealth(HealthKeeper):
    """Tells the book of every outcome, and compares the two after each."""

    book: Book
    dead = False
    """A process that was killed has no outcomes any more."""

    def _compare(self) -> None:
        self.book.wrong += differences(self.book, self, self._clock.now())

    def failed(self, target: Target, verdict: Verdict) -> None:
        super().failed(target, verdict)
        self.book.failed(FLIGHT.get(), self._clock.now())
        self._compare()
        self.book.look(FLIGHT.get(), self._clock.now())

    def succeeded(self, target: Target) -> None:
        super().succeeded(target)
        self.book.succeeded(FLIGHT.get(), self._clock.now())
        self._compare()

    def return_probe(self, target: Target) -> None:
        super().return_probe(target)
        if not self.dead:
            self.book.gave_back(FLIGHT.get())
            self._compare()

    def clear(self, provider: str | None = None, account: str | None = None, model: str | None = None) -> Cleared:
        cleared = super().clear(provider, account, model)
        self.book.cleared(provider, account, model)
        self._compare()
        return cleared


@dataclass(slots=True, eq=False)
class Request:
    """A request in flight; setting *left* makes its client leave."""

    flight: Flight
    left: asyncio.Event
    task: asyncio.Task[None]


class Stage:
    """One gateway after another over the same journal, and the requests that are on their way. Needs a running loop."""

    def __init__(self) -> None:
        self.book = Book()
        self.rig = Rig(*PARTS, policy=POLICY)
        self.observer = self.rig.observer = WatchedObserver(self.book)
        self.rig.upstream = WatchedUpstream(self.book)
        self.requests: list[Request] = []
        self.start(FakeEventLog())

    def start(self, log: FakeEventLog) -> None:
        """A process begins, with an empty state."""
        rig = self.rig
        rig.log = log
        self.health = rig.health = WatchedHealth(
            clock=rig.clock, log=log, observer=self.observer, policy=HealthPolicy(), rng=Random(7)
        )
        self.health.book = self.book
        rig.build()
        retries = Retries(rig.clock, RetryPolicy(RATIO, FLOOR / WINDOW_S))
        rig.gear = replace(rig.gear, retries=retries)
        rig.walk = Walk(rig.gear, rig.planner)

    async def restart(self) -> None:
        """Kill the process in the middle of everything; the next one finds the journal."""
        records = [to_record(event) for event in (*self.rig.log.earlier, *self.rig.log.events)]
        self.health.dead = True
        for request in self.requests:
            request.task.cancel()
        await asyncio.gather(*(request.task for request in self.requests), return_exceptions=True)
        self.requests = []
        self.book.restarted()
        self.start(FakeEventLog(*map(from_record, records)))
        await self.health.restore()

    def ask(self, model: str, answers: Sequence[tuple[Answer, float]], *, stream: bool) -> None:
        """Begin a request whose attempts will meet *answers*."""
        flight = Flight(pairs_of(model), stream, answers, self.rig.clock.now())
        left = asyncio.Event()
        task = asyncio.get_running_loop().create_task(self._walk(flight, model, left))
        self.requests.append(Request(flight, left, task))

    async def _walk(self, flight: Flight, model: str, left: asyncio.Event) -> None:
        FLIGHT.set(flight)
        self.book.look(flight, flight.began)
        self.book.requests.append(flight.began)
        try:
            served = await self.rig.ask(model, stream=flight.stream, client=[When(left), DISCONNECT])
        except AllUnavailable as exc:
            self.book.refused(flight, exc.headers["retry-after"], flight.began, rate_limited=exc.rate_limited)
            return
        if not left.is_set():
            self._finished(flight, served)

    def _finished(self, flight: Flight, served: Served) -> None:
        self.book.finished(
            flight,
            served.outcomes,
            self.rig.clock.now(),
            status=served.exchange.status,
            spent=served.call.ledger.budget_spent,
        )

    def look(self) -> Iterable[str]:
        """Let go of what is done, and return what is wrong now."""
        for request in self.requests:
            if request.task.done():
                request.task.result()
        self.requests = [request for request in self.requests if not request.task.done()]
        now = self.rig.clock.now()
        return [*self.book.wrong, *differences(self.book, self.health, now), *self._places(), *self._told(now)]

    def _places(self) -> Iterator[str]:
        open_now = (r.flight.attempts[-1] for r in self.requests if r.flight.attempts)
        carried = Counter(seen.pair.account for seen in open_now if not seen.over)
        told = Counter(self.observer.inflight)
        if +told != carried:
            yield f"{told} places are told, {carried} are taken"
        if not self.requests and not self.rig.idle:
            yield "something is held after the last request"

    def _told(self, now: float) -> Iterator[str]:
        for key, circuit in self.book.circuits.items():
            told, state = self.observer.circuits.get(key, "closed"), circuit.state(now)
            if told != state and (told, state) != ("open", "half_open"):  # time alone tells nobody
                yield f"{key}: {told} is told, it is {state}"
