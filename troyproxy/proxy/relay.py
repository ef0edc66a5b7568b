"""One upstream's stream to the client: held to its first output, then relayed, then ended in exactly one way.

Every way to end is a method: `_finish` (the upstream finished; a forgotten ``[DONE]`` is added once) or `_cut` (one
in-band error event and no ``[DONE]``). Nothing else ends a stream that has begun.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from troyproxy.accounting.usage import Usage, estimate
from troyproxy.errors import TroyError, type_of
from troyproxy.ports import EarFailed, UpstreamFailed, UpstreamResponse
from troyproxy.proxy.alarm import Alarm
from troyproxy.proxy.call import Call
from troyproxy.proxy.client import Client
from troyproxy.proxy.exhausted import CREDENTIAL, curable
from troyproxy.proxy.head import HeadState, StreamHead
from troyproxy.proxy.hearing import Hearing
from troyproxy.proxy.masking import masked
from troyproxy.proxy.outcome import Broken, Served, Target
from troyproxy.proxy.reader import FrameReader
from troyproxy.proxy.recording import Recorder
from troyproxy.proxy.tally import Tally, choices_of, forwardable
from troyproxy.resilience.classify import Failure
from troyproxy.resilience.faults import Fault
from troyproxy.wire import chat, json
from troyproxy.wire.sse import DONE, Frame, StreamTooLong

BYTES_PER_TOKEN: Final = 4
"""Models mostly send one token an event; the estimate of an unreported stream counts events."""

LOGGER: Final = logging.getLogger("troyproxy.stream")

_DONE: Final = Frame(raw=DONE, data=b"[DONE]")

Commit = Callable[[], Awaitable[None]]


class StreamRelay:
    """Relays one response. `commit` is awaited once, at the commit point: it records the success and sends the head."""

    __slots__ = (
        "_call",
        "_client",
        "_commit",
        "_done",
        "_hearing",
        "_idle_s",
        "_output_by",
        "_output_s",
        "_policy",
        "_recorder",
        "_tail",
        "_tally",
        "_target",
        "_time",
    )

    def __init__(self, call: Call, target: Target, client: Client, recorder: Recorder, commit: Commit) -> None:
        self._call, self._target, self._client = call, target, client
        self._recorder, self._policy, self._commit = recorder, recorder.policy, commit
        self._tally = Tally(choices=choices_of(call.payload))
        self._done, self._tail = _DONE, list[Frame]()
        self._time = client.alarm.time
        self._idle_s = self._policy.idle_of(target.provider)
        self._output_s = min(self._policy.first_output_of(target.provider), target.limit_s)
        self._output_by = self._time() + self._output_s
        """Until the first output only this runs, whatever arrives; a head that was full committed without any."""

    @property
    def usage(self) -> Usage | None:
        """What the upstream reported; once something was delivered without a report, an estimate, flagged as one."""
        if self._tally.usage is not None or not self._call.ledger.served:
            return self._tally.usage
        return self._estimate()

    def _estimate(self) -> Usage:
        needs = self._call.needs
        return estimate(needs.est_tokens if needs is not None else 0, self._tally.events * BYTES_PER_TOKEN)

    async def run(self, response: UpstreamResponse) -> Broken | Served:
        """Hold, commit, pump. Raises ClientGone."""
        reader = FrameReader(response, limit=self._policy.max_event)
        held = await self._hold(reader)
        if isinstance(held, Broken):
            return held
        self._hearing = Hearing(self._tally, self._client, idle_s=self._idle_s, gaps_s=self._call.ledger.gaps_s)
        await self._commit()
        await self._client.frames(held, more=True)
        del held  # a head that was full is large, and a stream may be long
        self._hearing.quiet_since = self._time()
        outcome = await self._pump(reader)
        if self._tally.dropped:
            said = f"dropped {self._tally.dropped} data lines that were no JSON objects"
            self._call.ledger.say(said)
            LOGGER.info("%s: %s", self._target.candidate.spec, said)
        return outcome

    # --- HELD ---

    async def _hold(self, reader: FrameReader) -> Broken | list[Frame]:
        policy = self._policy
        head = StreamHead(
            self._tally,
            self._call.gates,
            max_events=policy.head_events,
            max_bytes=policy.head_bytes,
            can_reject=self._target.can_reject,
        )
        since = self._time()
        try:
            with self._client.alarm.until(self._output_by) as alarm:
                return await self._until_output(reader, head, alarm)
        except TimeoutError:
            silent = self._tally.output and self._time() < self._target.walk_until
            return self._broken(Fault.TIMEOUT_IDLE if silent else Fault.TIMEOUT_TOTAL)
        except UpstreamFailed as exc:
            return self._broken(exc.fault)
        except StreamTooLong:
            return self._broken(Fault.PROTOCOL)
        finally:
            self._call.ledger.upstream_s += self._time() - since

    async def _until_output(self, reader: FrameReader, head: StreamHead, alarm: Alarm) -> Broken | list[Frame]:
        events = 0
        while batch := await reader.next():
            for at, frame in enumerate(batch):
                state = head.take(frame)
                if state is HeadState.COMMIT:
                    reader.give_back(batch[at + 1 :])
                    return head.frames
                if state is HeadState.END:
                    reader.give_back(batch[at:])
                    return self._ended_early(head)
                if state is not HeadState.HELD:
                    return self._refused(state, head)
            if self._tally.output and self._tally.events > events:
                # A gate still reads: a call that is written as text may be long, and its model is at work.
                events = self._tally.events
                alarm.set(min(self._time() + self._idle_s, self._target.walk_until))
        return self._ended_early(head)

    def _ended_early(self, head: StreamHead) -> Broken | list[Frame]:
        """The stream is over and nothing was sent. A proper end decides for gates that still wait."""
        if self._tally.finished:
            return head.frames
        if self._tally.events:
            empty = self._tally.done and not self._tally.output  # a role is no answer
            return self._broken(Fault.EMPTY if empty else Fault.RESET)
        if head.stray_error is not None:
            return self._in_band(head.stray_error)
        return self._broken(Fault.NOT_A_COMPLETION if head.stray.strip() else Fault.EMPTY)

    def _refused(self, state: HeadState, head: StreamHead) -> Broken:
        if state is HeadState.REJECTED:
            body = b"" if head.failed_call is None else json.encode(head.failed_call)
            failure = self._target.failure(fault=Fault.LEAK, body=body)
            return Broken(failure, usage=self._tally.usage or self._estimate())
        return self._broken(Fault.NOT_A_COMPLETION) if self._tally.error is None else self._in_band(self._tally.error)

    def _in_band(self, error: object) -> Broken:
        return Broken(self._said(error), usage=self._tally.usage, message=chat.error_message(error))

    def _broken(self, fault: Fault) -> Broken:
        return Broken(self._target.failure(fault=fault), usage=self._tally.usage)

    def _said(self, error: object) -> Failure:
        """Return the failure that an error object under a 200 tells of."""
        return self._target.failure(chat.error_code(error), body=json.encode({"error": error}), in_band=True)

    # --- COMMITTED ---

    async def _pump(self, reader: FrameReader) -> Served:
        try:
            with self._client.alarm.until(self._deadline()) as alarm:
                await self._forward(reader, alarm)
        except TimeoutError:
            return await self._cut_by_clock()
        except UpstreamFailed as exc:
            return await self._ended(exc.fault)
        except EarFailed as exc:  # a bug on the way to the client: the server hears of it, and no account of anything
            await self._say(TroyError.code, str(exc), TroyError.status, retryable=True)
            raise
        except StreamTooLong:
            limit = self._policy.max_event >> 20
            return await self._cut("stream_too_large", f"one event was larger than {limit} MiB", Fault.PROTOCOL)
        error = self._tally.error
        return await self._ended(Fault.RESET) if error is None else await self._cut_by_error(error)

    async def _forward(self, reader: FrameReader, alarm: Alarm) -> None:
        """Pass on what comes until the stream ends, and what the ear leaves."""
        tally, client, hearing = self._tally, self._client, self._hearing
        reader.listen(hearing.begin(reader.at_once))
        while batch := await reader.next():
            before = tally.events
            passed = batch if tally.pass_on(batch) else self._sifted(batch)
            now = hearing.note(before)
            if tally.done or tally.error is not None:
                self._tail = passed  # what comes with the end goes out with it
                return
            if passed:
                await client.go_on(passed, now)
                if client.sent_at > now:  # what the client took its time for is not the upstream's silence
                    hearing.quiet_since += client.sent_at - now
            alarm.set(hearing.quiet_since + self._idle_s if tally.output else self._deadline())

    def _deadline(self) -> float:
        """Return when the upstream's time is up. Raises TimeoutError when it is: a flood never lets a timer fire."""
        if self._tally.output:
            return self._hearing.quiet_since + self._idle_s
        if self._time() >= self._output_by:
            raise TimeoutError
        return self._output_by

    async def _cut_by_clock(self) -> Served:
        if self._tally.output:
            idle_ms = round(self._idle_s * 1000)
            return await self._cut("timeout", f"upstream idle for over {idle_ms} ms", Fault.TIMEOUT_IDLE)
        limit_ms = round(self._output_s * 1000)
        return await self._cut("timeout", f"no output from the upstream for over {limit_ms} ms", Fault.TIMEOUT_TOTAL)

    def _sifted(self, batch: list[Frame]) -> list[Frame]:
        """Take in frames one by one, and return those that the client gets."""
        passed: list[Frame] = []
        for frame in batch:
            event = self._tally.see(frame, whole=not self._tally.output)
            if frame.data == b"[DONE]":
                self._done = frame  # any other spelling of it is told in the one that clients know
            if self._tally.error is not None or self._tally.done:
                break
            if forwardable(frame) and (frame.complete or event is not None):
                passed.append(frame)
        return passed

    # --- the end, once ---

    async def _ended(self, fault: Fault) -> Served:
        """The upstream says, or shows, that it is done. Without a finish reason its ``[DONE]`` alone ends nothing."""
        if self._tally.finished:
            return await self._finish()
        return await self._cut("upstream_disconnected", "the upstream ended the stream before it was complete", fault)

    async def _finish(self) -> Served:
        await self._client.frames([*self._tail, self._done], more=False)
        return Served(self._tally.usage)

    async def _cut_by_error(self, error: object) -> Served:
        failure = self._said(error)
        said = chat.error_message(error).encode("utf-8", "replace")
        message = masked(said, self._call.snapshot, self._target.provider).decode("utf-8", "replace")
        ours = self._recorder.verdict(failure).error_class in CREDENTIAL  # a client would throw its own key away
        return await self._error_event("upstream_error", message, failure, 502 if ours else failure.status or 502)

    async def _cut(self, code: str, message: str, fault: Fault) -> Served:
        return await self._error_event(
            code, message, self._target.failure(fault=fault), 504 if code == "timeout" else 502
        )

    async def _error_event(self, code: str, message: str, failure: Failure, status: int) -> Served:
        await self._say(code, message, status, retryable=curable([self._recorder.verdict(failure)]))
        return Served(self._tally.usage, cut=failure)

    async def _say(self, code: str, message: str, status: int, *, retryable: bool) -> None:
        """Tell the client, as the last word, that this is not all."""
        ledger = self._call.ledger
        ledger.truncated = True
        event = chat.error_event(
            message=message,
            type=type_of(status),
            code=code,
            request_id=self._call.request_id,
            attempts=len(ledger.attempts),
            retryable=retryable,
        )
        await self._client.frames([*self._tail, Frame(raw=event, data=event[6:].strip())], more=False)
