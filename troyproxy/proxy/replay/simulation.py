"""Recorded requests walked again under a policy, on a virtual clock.

The planner, the walk, the account pick, breakers, cooldowns and the retry budget are those of live traffic. Only what
lies outside of the gateway is played: upstreams and clients (`player`), and time (`virtual_time`). The state begins
empty, as after a first start. Nothing is opened and nothing is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.catalog.keys import Key
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import ModelNotFound, TroyError
from troyproxy.ports import Clock, UpstreamFailed, UpstreamRequest, UpstreamResponse
from troyproxy.proxy.call import CHAT_PATH, Call
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.replay.player import Player
from troyproxy.proxy.replay.recording import Recording, Source
from troyproxy.proxy.replay.trace import TracedRequest
from troyproxy.proxy.replay.virtual_time import VirtualClock, VirtualLoop
from troyproxy.proxy.rows import row_of
from troyproxy.proxy.walk import AnswerCut, Walk
from troyproxy.resilience.events import Event
from troyproxy.resilience.faults import Fault
from troyproxy.routing.effort import decide
from troyproxy.routing.names import resolve
from troyproxy.wire import json

SEED_BITS: Final = 64
ROUNDING_S: Final = 2e-6
"""More than what unix seconds are rounded to as floats: what ended before the next request came must end before it."""


class NoJournal:
    """`ports.EventLog` that keeps nothing."""

    def append(self, event: Event) -> None:
        """Forget *event*."""

    async def replay(self) -> Sequence[Event]:
        """Return nothing."""
        return ()


class NoUpstream:
    """`ports.Upstream` that nobody is reached by: each request brings its own."""

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        """Raises UpstreamFailed."""
        raise UpstreamFailed(Fault.CONNECT, f"{request.provider.id} is not called in a simulation")

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What requests are walked by. The parts read one `VirtualClock`; the *gear*'s own upstream is not called."""

    name: str
    snapshot: Snapshot
    gear: Gear
    planner: Planner


@dataclass(frozen=True, slots=True)
class Simulated:
    """What became of one request. *unknown*: the policy knows no such model."""

    row: UsageRow
    attempts: tuple[AttemptRecord, ...]
    sources: Mapping[Source, int]
    unknown: bool = False


Told = Callable[[Simulated], None]


def simulate(
    requests: Iterable[TracedRequest],
    recording: Recording,
    policy_at: Callable[[Clock], Policy],
    told: Told,
    *,
    seed: int = 0,
) -> None:
    """Walk *requests*, in the order of their arrival, by the policy that *policy_at* makes for a clock.

    *told* hears of each when it ends. *seed* draws the outcomes that *recording* (of the same requests) does not have
    for a request itself; plans use the live seeds. Must not run inside an event loop.
    """
    policy = policy_at(VirtualClock(recording.first_at))
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(_Simulation(policy, recording, told, seed).run(requests))


class _Simulation:
    def __init__(self, policy: Policy, recording: Recording, told: Told, seed: int) -> None:
        self._policy, self._recording, self._told, self._seed = policy, recording, told, seed
        self._clock, self._observer = policy.gear.clock, policy.gear.observer

    async def run(self, requests: Iterable[TracedRequest]) -> None:
        """Start each request when it arrived, while earlier ones may still be on their way."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualLoop):  # pragma: no cover -- `simulate` runs it on one
            raise TypeError("a simulation runs on a virtual loop")
        async with asyncio.TaskGroup() as group:
            before, ended = group.create_task(loop.settle()), 0.0
            for request in requests:
                await asyncio.sleep(max(0.0, request.at - self._clock.now()))
                await loop.settle()  # what ended at this very moment has ended
                if abs(ended - request.at) < ROUNDING_S:
                    await asyncio.wait({before}, timeout=ROUNDING_S)
                before = group.create_task(self._one(request))
                ended = request.at + request.duration_ms / 1000

    async def _one(self, request: TracedRequest) -> None:
        call = self._call(request)
        player = Player(request, call, self._policy.gear, self._recording, self._seed)
        self._observer.request_started()
        await self._clock.sleep(_lag_s(request))
        unknown = False
        try:
            self._plan(call, request)
        except TroyError as error:
            call.ledger.refused = True
            call.ledger.note_status(error.http_status)
            unknown = isinstance(error, ModelNotFound)
        else:
            walk = Walk(replace(self._policy.gear, upstream=player), self._policy.planner)
            with suppress(AnswerCut):
                await walk.run(call, player.receive, player.hear)
        row = row_of(call, duration_s=self._clock.monotonic() - call.started)
        self._observer.request_finished(row)
        self._told(Simulated(row, player.attempts, player.sources, unknown=unknown))

    def _plan(self, call: Call, request: TracedRequest) -> None:
        call.resolution = resolve(request.model, call.snapshot)
        call.effort = decide(call.payload, call.resolution.effort, call.snapshot.default_effort)
        call.needs = request.needs
        call.tool_turn = request.needs.tools  # what leaked then counts for the leak rates now
        self._policy.planner.plan(call)

    def _call(self, request: TracedRequest) -> Call:
        payload: dict[str, object] = {"model": request.model, **({"stream": True} if request.stream else {})}
        return Call(
            request_id=request.request_id,
            at=request.at,
            started=self._clock.monotonic(),
            route=request.route,
            upstream_path=request.route.removeprefix("/v1") or CHAT_PATH,
            headers=tuple((name.encode(), value.encode()) for name, value in request.headers.items()),
            snapshot=self._policy.snapshot,
            key=_key(request),
            seed=int(request.seed) if request.seed is not None else self._drawn(request),
            body=json.encode(payload),
            payload=payload,
            gist=request.auto,
            usage_wanted=True,
        )

    def _drawn(self, request: TracedRequest) -> int:
        """Return a seed for a request that has none."""
        digest = sha256(f"{self._seed}:{request.request_id}".encode()).digest()
        return int.from_bytes(digest[: SEED_BITS // 8], "big")


def _lag_s(request: TracedRequest) -> float:
    """Return how long after its arrival a request was planned: its body came first, and its key was looked up."""
    if not request.attempts:
        return 0.0
    return min(max(0.0, request.attempts[0].started_at - request.at), request.duration_ms / 1000)


def _key(request: TracedRequest) -> Key | None:
    key = request.key
    return None if key is None else Key(key.id, key.id, b"", models=key.models, provider=key.provider)
