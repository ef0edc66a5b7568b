"""Random traffic through the real walk, over a scripted upstream and in virtual time, judged by a model of the design.

Rules are what can happen from outside: requests (each with the answers that its attempts will meet), time, clients that
leave, an operator's clearing, a restart. Requests stay in flight from rule to rule, so that anything may meet anything.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from random import Random
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.asgi import DISCONNECT, When
from tests.fakes import FakeEventLog, FakeObserver, FakeResponse, FakeUpstream, _play
from tests.proxy.rig import Rig, combo, provider
from tests.proxy.walk_answers import Answer, reply_to
from tests.proxy.walk_model import ANY, FLOOR, RATIO, WALK_S, Book, Flight, Key, Lock, Pair, busy
from tests.virtual import VirtualLoop
from troyproxy.accounting.records import AttemptRecord
from troyproxy.errors import AllUnavailable
from troyproxy.ports import UpstreamRequest, UpstreamResponse
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.outcome import Target
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.proxy.retries import Retries
from troyproxy.proxy.walk import Walk
from troyproxy.resilience.breaker import Admission
from troyproxy.resilience.classify import Verdict
from troyproxy.resilience.cooldowns import Cooldown
from troyproxy.resilience.events import Cleared, from_record, to_record
from troyproxy.resilience.health import HealthPolicy
from troyproxy.resilience.retry_budget import RetryPolicy

TICK_S: Final = 1 / 512
"""Passes before every request, so that no two things happen at the same moment."""
ALPHA, BETA = provider("alpha", "m1", "m3", accounts="AB"), provider("beta", "m2", accounts="AB")
MEMBERS: Final = ("alpha/m1", "beta/m2", "alpha/m3")
SMALL, TURNS = combo("small", *MEMBERS), combo("turns", *MEMBERS, strategy="round-robin")
CHAINS: Final = {"small": MEMBERS, "turns": MEMBERS, "alpha/m1": ("alpha/m1",), "beta/m2": ("beta/m2",)}
POLICY: Final = WalkPolicy(
    upstream_timeout_s=20.0,
    stream_idle_s=20.0,
    first_output_s=20.0,
    request_timeout_s=WALK_S,
)
FLIGHT: ContextVar[Flight] = ContextVar("FLIGHT")
"""The request on whose behalf something happens."""


def pairs_of(model: str) -> tuple[Pair, ...]:
    members = [member.split("/") for member in CHAINS[model]]
    return tuple(Pair(owner, f"{owner}#{letter}", name) for owner, name in members for letter in "AB")


class ToldObserver(FakeObserver):
    """Knows the circuits from what it is told of their turns, as the metrics do."""

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
            self.book.learns(FLIGHT.get(), LOOP_TIME())

    def attempt_finished(self, attempt: AttemptRecord) -> None:
        FLIGHT.get().attempts[-1].over = True
