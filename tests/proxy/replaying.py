"""Sequential traffic through the real walk, recorded as a trace, and walked again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from random import Random

from tests.asgi import Step
from tests.fakes import FakeUpstream, Reply
from tests.proxy import rig
from tests.proxy.rig import Rig
from tests.virtual import VirtualLoop
from troyproxy.accounting.records import AttemptRecord
from troyproxy.app.simulating import simulated
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import TroyError
from troyproxy.ports import Clock, UpstreamRequest, UpstreamResponse
from troyproxy.proxy.call import Call
from troyproxy.proxy.replay.recording import Recording
from troyproxy.proxy.replay.simulation import Policy, Simulated, simulate
from troyproxy.proxy.replay.trace import TracedRequest, traced
from troyproxy.proxy.rows import row_of
from troyproxy.settings.load import Configuration
from troyproxy.settings.values import Settings

Answers = Callable[[UpstreamRequest], Reply]
Tried = list[tuple[str, str, str, str]]


class Upstreams(FakeUpstream):
    """Answers each request by what it is, not by an order."""

    def __init__(self, answers: Answers) -> None:
        super().__init__()
        self._answers = answers

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        self.add(request.provider.id, self._answers(request))
        return await super().send(request)


class Weather:
    """Upstreams that fail in every way there is, as *rng* has it."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def __call__(self, request: UpstreamRequest) -> Reply:
        before = (self._rng.uniform(0.01, 3.0),)
        reply = self._rng.choice(_STREAMS if json.loads(request.body).get("stream") else _WHOLE)
        return replace(reply, before=(*before, *reply.before))


_ERRORS = (
    rig.refusal(429, "slow down", retry_after="7"),
    rig.refusal(429, "slow down"),
    rig.refusal(429, "quota exceeded"),
    rig.refusal(402, "pay"),
    rig.refusal(401, "no such key"),
    rig.refusal(403, "not in your region"),
    rig.refusal(403, "request not allowed"),
    rig.refusal(400, "bad"),
    rig.refusal(400, "too long", "context_length_exceeded"),
    rig.refusal(404, "no such model", "model_not_found"),
    rig.refusal(413, "too large"),
    rig.refusal(500, "oh"),
    rig.refusal(503, "overloaded", retry_after="3"),
    rig.refusal(529, "overloaded"),
    rig.answer(b""),
    rig.answer(b"<html>"),
    Reply(before=[rig.reset()]),
    rig.fault(),
)
_GOOD = rig.answer()
_WHOLE = (*_ERRORS, *[_GOOD] * 30)
_STREAMS = (
    *_ERRORS,
    *[rig.stream(rig.role(), rig.delta("x"), 0.7, rig.finish(), rig.usage(), rig.DONE)] * 24,
    rig.stream(rig.role(), rig.delta("x"), 0.4, rig.reset()),
    rig.stream(rig.role(), rig.event({"error": {"message": "overloaded", "type": "overloaded_error"}})),
    rig.stream(rig.role(), rig.delta("x"), rig.event({"error": {"message": "slow", "code": 429}})),
)


class Recorder:
    """A rig whose requests are kept as lines of a trace."""

    def __init__(self, made: Rig, answers: Answers) -> None:
        self.rig = made
        made.upstream = Upstreams(answers)
        made.build()
        self.requests: list[TracedRequest] = []

    async def ask(self, call: Call, client: Iterable[Step] = ()) -> None:
        """Send one request and wait for its end."""
        began = self.rig.clock.monotonic()
        try:
            await self.rig.ask(call=call, client=client)
        except TroyError as error:
            call.ledger.refused, call.ledger.status = True, error.http_status
        row = row_of(call, duration_s=self.rig.clock.monotonic() - began)
        self.requests.append(traced(row, call.key))


def record(made: Rig, rng: Random, count: int, *models: str) -> list[TracedRequest]:
    """Return *count* requests for *models*, one after the other with pauses, through upstreams of any weather."""
    recorder = Recorder(made, Weather(rng))

    async def drive() -> None:
        for _ in range(count):
            await asyncio.sleep(rng.choice([0.0, 0.2, 2.0, 6.0, 40.0]) * rng.random())
            call = made.call(rng.choice(models), stream=rng.random() < 0.5)
            call.seed = rng.getrandbits(64)
            await recorder.ask(call)

    run(drive)
    return recorder.requests


def run(work: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run *work* on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(work())


def again(
    requests: Sequence[TracedRequest],
    snapshot: Snapshot,
    settings: Settings | None = None,
    *,
    seed: int = 0,
    ended: list[str] | None = None,
) -> list[Simulated]:
    """Return what becomes of *requests* with *snapshot*, in their order; in *ended* in that of their ends."""
    recording = Recording()
    for request in requests:
        recording.add(request)

    def policy(clock: Clock) -> Policy:
        made = simulated("again", Configuration(settings or Settings(), {}), clock, now=0.0)
        return replace(made, snapshot=snapshot)

    found: dict[str, Simulated] = {}
    simulate(requests, recording, policy, lambda one: found.update({one.row.request_id: one}), seed=seed)
    if ended is not None:
        ended += found
    return [found[request.request_id] for request in requests]


def tried(attempts: Sequence[AttemptRecord]) -> Tried:
    """Return where *attempts* went, and what they came to."""
    return [(attempt.provider, attempt.model, attempt.account, attempt.outcome) for attempt in attempts]


def attempt(where: str, outcome: str = "ok", **fields: object) -> AttemptRecord:
    """An attempt at ``provider/model#account``."""
    spec, account = where.split("#")
    name, _, of = spec.partition("/")
    base = {"status": 200 if outcome == "ok" else 500, "started_at": 1000.0, "duration_ms": 100.0}
    return AttemptRecord(name, of, account, outcome, **{**base, **fields})  # type: ignore[arg-type]  # fields by name


def request(*attempts: AttemptRecord, at: float = 1000.0, name: str = "req_1", **fields: object) -> TracedRequest:
    outcome = "ok" if attempts and attempts[-1].outcome == "ok" else "upstream_error"
    base: dict[str, object] = {"model": "two", "outcome": outcome, "seed": "7", "duration_ms": 100.0}
    return TracedRequest(request_id=name, at=at, attempts=attempts, **{**base, **fields})  # type: ignore[arg-type]
