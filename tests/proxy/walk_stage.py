"""The real walk with a `Book` listening: every call of the upstream, every outcome and every turn is told to the model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from tests.asgi import DISCONNECT, When
from tests.fakes import FakeEventLog, FakeObserver, FakeUpstream, Reply
from tests.proxy.rig import Rig, Served, combo, provider
from tests.proxy.walk_answers import Answer, reply_to
from tests.proxy.walk_compare import differences
from tests.proxy.walk_model import FLOOR, RATIO, WALK_S, Book, Flight, Pair
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
POLICY: Final = WalkPolicy(
    upstream_timeout_s=20.0, stream_idle_s=20.0, first_output_s=20.0, request_timeout_s=WALK_S
)
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
        self.book.check(told == before, f"{provider}/{model}: told to turn from {before} when it was {told}")
        self.circuits[provider, model] = after

    def inflight_changed(self, provider: str, account: str, count: int) -> None:
        self.inflight[f"{provider}#{account}"] = count

    def adapted(self, provider: str, param: str, action: str) -> None:
        if action == "learned":
            self.book.learns(FLIGHT.get(), LoopClock().now())

    def attempt_finished(self, attempt: AttemptRecord) -> None:
        FLIGHT.get().attempts[-1].over = True


class WatchedUpstream(FakeUpstream):
    """Answers as the flight's own list says."""

    def __init__(self, book: Book) -> None:
        super().__init__()
        self.book = book

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        flight, body = FLIGHT.get(), json.loads(request.body)
        token = dict(request.headers)[b"authorization"].decode()
        (account,) = (a for a in request.provider.accounts if token == f"Bearer {a.api_key.reveal()}")
        pair = Pair(request.provider.id, account.id, body["model"])
        seen = self.book.sends(flight, pair, LoopClock().now(), asked_usage="stream_options" in body)
        self.add(pair.provider, reply_to(seen.answer, seen.wait_s, streamed=flight.stream))
        return await super().send(request)


class WatchedHealth(HealthKeeper):
    """Tells the book of every outcome, and compares the two after each."""

    book: Book
    dead = False
    """A process that was killed has no outcomes any more."""

    def _compare(self) -> None:
        self.book.wrong += differences(self.book, self)

    def failed(self, target: Target, verdict: Verdict) -> None:
        super().failed(target, verdict)
        self.book.failed(FLIGHT.get(), self._clock.now())
        self._compare()

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
