"""One upstream's stream to the client: held to its first output, then relayed, then ended in exactly one way.

Every way to end is a method: `_finish` (the upstream finished; a forgotten ``[DONE]`` is added once) or `_cut` (one
in-band error event and no ``[DONE]``). Nothing else ends a stream that has begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from troyproxy.accounting.usage import Usage, estimate
from troyproxy.errors import type_of
from troyproxy.ports import UpstreamFailed, UpstreamResponse
from troyproxy.proxy.call import Call
from troyproxy.proxy.client import Client
from troyproxy.proxy.head import HeadState, StreamHead
from troyproxy.proxy.outcome import Broken, Served, Target
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.proxy.reader import FrameReader
from troyproxy.proxy.tally import Tally, forwardable
from troyproxy.resilience.classify import Failure
from troyproxy.resilience.faults import Fault
from troyproxy.wire import chat, json
from troyproxy.wire.sse import DONE, Frame, StreamTooLong

GAP_SAMPLE: Final = 512
"""Gaps between events that are kept of one stream, for the histogram."""

BYTES_PER_TOKEN: Final = 4
"""Models mostly send one token an event; the estimate of an unreported stream counts events."""

Commit = Callable[[], Awaitable[None]]


class StreamRelay:
    """Relays one response. `commit` is awaited once, at the commit point: it records the success and sends the head."""

    def __init__(self, call: Call, target: Target, client: Client, policy: WalkPolicy, commit: Commit) -> None:
        self._call, self._target, self._client = call, target, client
        self._policy, self._commit = policy, commit
        choices = call.payload.get("n")
        self._tally = Tally(choices=choices if isinstance(choices, int) else 1)
        self._loop = asyncio.get_running_loop()
        self._last_event = 0.0

    @property
    def usage(self) -> Usage | None:
        """What the upstream reported; once something was delivered without a report, an estimate, flagged as one."""
        if self._tally.usage is not None or not self._call.ledger.served:
            return self._tally.usage
        needs = self._call.needs
        return estimate(needs.est_tokens if needs is not None else 0, self._tally.events * BYTES_PER_TOKEN)

    async def run(self, response: UpstreamResponse) -> Broken | Served:
        """Hold, commit, pump. Raises ClientGone."""
        reader = FrameReader(response, limit=self._policy.max_event)
        held = await self._hold(reader)
        if isinstance(held, Broken):
            return held
        self._last_event = self._loop.time()
        await self._commit()
        await self._client.frames(held, more=True)
        return await self._pump(reader)

    async def _hold(self, reader: FrameReader) -> Broken | list[Frame]:
        policy, target = self._policy, self._target
        head = StreamHead(
            self._tally,
            self._call.gates,
            max_events=policy.head_events,
            max_bytes=policy.head_bytes,
            can_reject=target.can_reject,
        )
        since = self._loop.time()
        try:
            async with asyncio.timeout(min(policy.first_output_of(target.provider), target.limit_s)):
                return await self._until_output(reader, head)
        except TimeoutError:
            return self._broken(Fault.TIMEOUT_IDLE)
        except UpstreamFailed as exc:
            return self._broken(exc.fault)
        except StreamTooLong:
            return self._broken(Fault.PROTOCOL)
        finally:
            self._call.ledger.upstream_s += self._loop.time() - since

    async def _until_output(self, reader: FrameReader, head: StreamHead) -> Broken | list[Frame]:
        while batch := await reader.next():
            for at, frame in enumerate(batch):
                state = head.take(frame)
                if state is HeadState.COMMIT:
                    reader.give_back(batch[at + 1 :])
                    return head.frames
                if state is not HeadState.HELD:
                    return self._refused(state)
        if self._tally.output:  # the gates never made up their minds: the end of the stream decides for them
            return head.frames
        return self._broken(Fault.EMPTY)

    def _refused(self, state: HeadState) -> Broken:
        error = self._tally.error
        if state is HeadState.REJECTED:
            return self._broken(Fault.LEAK)
        if error is None:
            return self._broken(Fault.NOT_A_COMPLETION)
        body = json.encode({"error": error})
        failure = self._failure(chat.error_code(error), body=body, in_band=True)
        return Broken(failure, usage=self._tally.usage, message=chat.error_message(error))

    def _failure(
        self, status: int | None = None, *, fault: Fault | None = None, body: bytes = b"", in_band: bool = False
    ) -> Failure:
        candidate = self._target.candidate
        return Failure(
            status=status,
            body=body,
            fault=fault,
            provider=self._target.provider.id,
            model=candidate.model,
            body_sent=True,
            in_band=in_band,
        )

    def _broken(self, fault: Fault) -> Broken:
        return Broken(self._failure(fault=fault), usage=self._tally.usage)

    async def _pump(self, reader: FrameReader) -> Served:
        idle_s = self._policy.idle_of(self._target.provider)
        try:
            async with asyncio.timeout(None) as clock:
                while True:
                    clock.reschedule(self._last_event + idle_s)
                    batch = await reader.next()
                    clock.reschedule(None)
                    if not batch:
                        break
                    await self._forward(batch)
                    if self._tally.error is not None:
                        return await self._cut_by_error(self._tally.error)
                    if self._tally.done:
                        return await self._finish()
        except TimeoutError:
            return await self._cut("timeout", f"upstream idle for over {round(idle_s * 1000)} ms", Fault.TIMEOUT_IDLE)
        except UpstreamFailed as exc:
            return await self._ended(exc.fault)
        except StreamTooLong:
            limit = self._policy.max_event >> 20
            return await self._cut("stream_too_large", f"one event was larger than {limit} MiB", Fault.PROTOCOL)
        return await self._ended(Fault.RESET)

    async def _forward(self, batch: list[Frame]) -> None:
        passed: list[Frame] = []
        before = self._tally.events
        for frame in batch:
            self._tally.see(frame, whole=False)
            if self._tally.error is not None or frame.is_done:
                break
            if forwardable(frame):
                passed.append(frame)
        if self._tally.events > before:
            self._note_gap()
        if passed:
            await self._client.frames(passed, more=True)

    def _note_gap(self) -> None:
        now = self._loop.time()
        gaps = self._call.ledger.gaps_s
        if len(gaps) < GAP_SAMPLE:
            gaps.append(now - self._last_event)
        self._last_event = now

    async def _ended(self, fault: Fault) -> Served:
        if self._tally.finished:
            return await self._finish()
        return await self._cut("upstream_disconnected", "the upstream ended the stream before it was complete", fault)

    async def _finish(self) -> Served:
        await self._client.frames([Frame(raw=DONE, data=b"[DONE]")], more=False)
        return Served(self._tally.usage)

    async def _cut_by_error(self, error: object) -> Served:
        status = chat.error_code(error)
        failure = self._failure(status, body=json.encode({"error": error}), in_band=True)
        return await self._error_event("upstream_error", chat.error_message(error), failure, status or 502)

    async def _cut(self, code: str, message: str, fault: Fault) -> Served:
        return await self._error_event(code, message, self._failure(fault=fault), 504 if code == "timeout" else 502)

    async def _error_event(self, code: str, message: str, failure: Failure, status: int) -> Served:
        ledger = self._call.ledger
        ledger.truncated = True
        event = chat.error_event(
            message=message,
            type=type_of(status),
            code=code,
            request_id=self._call.request_id,
            attempts=len(ledger.attempts),
            retryable=True,
        )
        await self._client.frames([Frame(raw=event, data=event[6:].strip())], more=False)
        return Served(self._tally.usage, cut=failure)
