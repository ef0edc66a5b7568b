"""Plays the upstreams of one simulated request: as they were for it, else as others found them; and its client."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from random import Random
from typing import Final

from troyproxy.accounting.records import AttemptRecord
from troyproxy.accounting.usage import Usage
from troyproxy.ports import UpstreamRequest, UpstreamResponse
from troyproxy.proxy.answers import Message
from troyproxy.proxy.call import Call
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.replay.answers import Answer, Serving, failed, fault_of, refusal, served
from troyproxy.proxy.replay.recording import Place, Recording, Sample, Source, place_of, samples_of
from troyproxy.proxy.replay.trace import OK, TracedRequest
from troyproxy.resilience.classes import ErrorClass

CANCELLED: Final = "cancelled"


class Player:
    """`ports.Upstream` for one *call*, which is *request* walked again; *gear* is the walk's."""

    def __init__(self, request: TracedRequest, call: Call, gear: Gear, recording: Recording, seed: int) -> None:
        self._request, self._call, self._gear, self._recording = request, call, gear, recording
        self._seed = seed
        self._own: dict[Place, deque[Sample]] = {}
        for sample in samples_of(request):
            self._own.setdefault(place_of(sample.attempt), deque()).append(sample)
        self._refused = next((s for s in samples_of(request) if s.attempt.outcome == ErrorClass.REQUEST), None)
        self.sources: Counter[Source] = Counter()
        self._learned: list[tuple[int, AttemptRecord]] = []

    # --- the upstream ---

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        """Answer the attempt that is being made. Raises UpstreamFailed."""
        del request  # a trace has no bodies; the ledger knows where this goes
        going = self._call.ledger.attempts[-1]
        sample, source = self._sample(going)
        self.sources[source] += 1
        if source is Source.RECORDED:
            sample = await self._learn(sample)
        return await self._play(sample, own=source is Source.RECORDED)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _sample(self, going: AttemptRecord) -> tuple[Sample, Source]:
        place = place_of(going)
        own = self._own.get(place)
        if own:
            return own.popleft(), Source.RECORDED
        if self._refused is not None:  # what one upstream finds wrong in a request others do, too
            return self._refused, Source.RECORDED
        number = len(self._call.ledger.attempts)
        rng = Random(f"{self._seed}:{self._request.request_id}:{'/'.join(place)}:{number}")  # noqa: S311 -- seeded
        return self._recording.draw(place, self._gear.clock.now(), rng)

    async def _learn(self, sample: Sample) -> Sample:
        """A place that was tried twice refused a parameter first: both attempts are made as one."""
        own = self._own.get(place_of(self._call.ledger.attempts[-1]))
        if not own or sample is self._refused:
            return sample
        self._learned.append((len(self._call.ledger.attempts) - 1, sample.attempt))
        self._gear.retries.count_retry()
        await self._gear.clock.sleep(sample.attempt.duration_ms / 1000)
        return own.popleft()

    async def _play(self, sample: Sample, *, own: bool) -> UpstreamResponse:
        attempt, clock = sample.attempt, self._gear.clock
        if attempt.outcome == CANCELLED:
            await asyncio.get_running_loop().create_future()  # no answer came before the client went
        serves = attempt.outcome == OK or (sample.cut and (self._call.stream or self._call.passing))
        if serves:
            return self._serve(sample, own=own)
        await clock.sleep(attempt.duration_ms / 1000)
        fault = fault_of(attempt)
        if fault is not None:
            raise failed(fault)
        return refusal(attempt)

    def _serve(self, sample: Sample, *, own: bool) -> Answer:
        attempt, target = sample.attempt, self._call.ledger.attempts[-1]
        provider = self._call.snapshot.providers[target.provider]
        whole_s = attempt.duration_ms / 1000
        return served(
            self._call,
            Serving(
                first_s=whole_s if sample.first_ms is None else sample.first_ms / 1000,
                whole_s=whole_s,
                usage=self._usage(attempt, own=own),
                idle_s=self._gear.policy.idle_of(provider) / 2,
                cut=attempt if sample.cut else None,
            ),
        )

    def _usage(self, attempt: AttemptRecord, *, own: bool) -> Usage:
        """Return the tokens: the request's own as far as they are known, for it asks the same wherever it goes."""
        if own and attempt.usage is not None:
            return attempt.usage
        if self._request.usage is not None:
            return self._request.usage
        drawn = attempt.usage.output if attempt.usage is not None else 0
        return Usage(self._request.needs.est_tokens, drawn, estimated=True)

    # --- the client ---

    async def receive(self) -> Message:
        """Return when the client leaves, if it left when this was recorded."""
        if self._request.outcome != CANCELLED:
            await asyncio.get_running_loop().create_future()
        left_at = self._request.at + self._request.duration_ms / 1000
        await self._gear.clock.sleep(max(0.0, left_at - self._gear.clock.now()))
        return {"type": "http.disconnect"}

    async def hear(self, message: Message) -> None:
        """The client's end: it reads everything at once."""

    # --- afterwards ---

    @property
    def attempts(self) -> tuple[AttemptRecord, ...]:
        """The attempts that were made, refused parameters included."""
        made = list(self._call.ledger.attempts)
        for place, attempt in reversed(self._learned):
            made.insert(place, attempt)
        return tuple(made)
