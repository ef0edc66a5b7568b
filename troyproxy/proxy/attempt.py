"""One attempt: one request to one account of one member, timed, read, judged and recorded.

The in-flight place and the upstream's response are held to the last byte, and given back whatever happens: a hang-up, a
deadline or a bug.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from msgspec.structs import replace

from troyproxy.accounting.usage import Usage, estimate, read_usage
from troyproxy.leaks.gate import GateVerdict
from troyproxy.ports import Headers, UpstreamFailed, UpstreamRequest, UpstreamResponse
from troyproxy.proxy.authenticator import presented_key
from troyproxy.proxy.call import Call
from troyproxy.proxy.client import Client
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.masking import discreet
from troyproxy.proxy.outcome import Answer, Broken, Served, Target
from troyproxy.proxy.passage import Passage
from troyproxy.proxy.recording import Recorder
from troyproxy.proxy.relay import StreamRelay
from troyproxy.proxy.report import commit_headers, passed_headers
from troyproxy.proxy.trace_headers import trace_headers
from troyproxy.proxy.turns import turns_told
from troyproxy.resilience.classify import Verdict
from troyproxy.resilience.faults import Fault
from troyproxy.wire import chat, json
from troyproxy.wire.glance import LARGE, glance
from troyproxy.wire.headers import all_harmless, crossing
from troyproxy.wire.heads import JSON

CLASSIFIED: Final = 64 * 1024
"""Bytes of an error body that the classifier reads; the client gets all of it."""
EMBEDDINGS: Final = "/v1/embeddings"
STATUSES: Final = range(200, 600)
"""What ends a request in HTTP (RFC 9110, section 15). Servers refuse to write any other, so none can be passed on."""


class Attempt:
    """Runs once. However it ends, its record is written, the upstream's response closed and the place given back."""

    __slots__ = ("_began", "_call", "_client", "_deadline", "_gear", "_recorder", "_target", "_time", "verdict")

    def __init__(self, gear: Gear, call: Call, target: Target, client: Client, recorder: Recorder) -> None:
        self._gear, self._call, self._target = gear, call, target
        self._client, self._recorder = client, recorder
        self._time = client.alarm.time
        self._began = self._time()
        self._deadline = self._began + target.limit_s
        self.verdict: Verdict
        """What it means that this attempt failed."""

    async def run(self, body: bytes) -> Broken | Served:
        """Send *body* and return what came of it. Raises ClientGone; a cancellation passes."""
        desk, account = self._gear.desk, self._target.account
        outcome: Broken | Served | None = None
        self._recorder.began(self._target)
        desk.enter(account)
        try:
            response = await self._send(body)
            if isinstance(response, Broken):
                outcome = response
            else:
                try:
                    read = await self._read(response)
                finally:
                    await response.aclose()
                outcome = read
        finally:
            desk.leave(account)
            self._end(outcome)
        return outcome

    def _end(self, outcome: Broken | Served | None) -> None:
        """Write down how it ended; None: it was given up, and a probe's lease ends with it."""
        try:
            if isinstance(outcome, Broken):
                self.verdict = self._recorder.broken(outcome)
        finally:
            self._recorder.ended(self._target, whole=outcome is not None)
        if outcome is None and self._target.probe:
            self._gear.health.return_probe(self._target)

    async def _send(self, body: bytes) -> UpstreamResponse | Broken:
        """Return the response when its head is there. Nothing behind this line may be taken for a slow head."""
        until = self._deadline
        if self._call.stream:
            until = min(until, self._began + self._gear.policy.first_byte_of(self._target.provider, stream=True))
        try:
            with self._client.alarm.until(until):
                return await self._gear.upstream.send(self._request(body))
        except UpstreamFailed as exc:
            return Broken(self._target.failure(fault=exc.fault, body_sent=exc.body_sent))
        except TimeoutError:
            fault = Fault.TIMEOUT_FIRST_BYTE if self._call.stream else Fault.TIMEOUT_TOTAL
            return Broken(self._target.failure(fault=fault))
        finally:
            self._call.ledger.upstream_s += self._time() - self._began

    def _request(self, body: bytes) -> UpstreamRequest:
        target, call = self._target, self._call
        template = self._gear.heads.template(call.snapshot, target.provider, target.account)
        return UpstreamRequest(
            provider=target.provider,
            method="POST",
            path=call.upstream_path,
            headers=template.head(
                self._client_headers(),
                call.request_id,
                content_type=None if call.passing else JSON,
                extra=trace_headers(call) if call.traced is not None else (),
            ),
            body=body,
            connect_s=self._gear.policy.connect_of(target.provider),
        )

    def _client_headers(self) -> Headers:
        """Return what crosses but what holds the client's key: some pages put theirs into their own address."""
        call = self._call
        found = crossing(call.headers, typed=call.passing)
        if not found or call.key is None or all_harmless(found):
            return found
        key = presented_key(call.headers)
        return found if key is None else tuple(pair for pair in found if key not in pair[1])

    def _read(self, response: UpstreamResponse) -> Awaitable[Broken | Served]:
        """Return what reads *response*: a frame less to wake for each event of a stream."""
        self._gear.measuring.heard(self._target.account, response.headers)
        if not 200 <= response.status < 300:
            return self._error(response)
        if self._call.stream:
            return self._stream(response)
        return self._passed(response) if self._call.passing else self._whole(response)

    async def _stream(self, response: UpstreamResponse) -> Broken | Served:
        async def commit() -> None:
            self._commit(response)
            await self._client.open(response.status, self._head(response))

        target = self._target.within(max(0.001, self._deadline - self._time()))
        relay = StreamRelay(self._call, target, self._client, self._recorder, commit)
        try:
            outcome = await relay.run(response)
        finally:
            self._recorder.usage(relay.usage)
        if isinstance(outcome, Served) and outcome.cut is not None:
            self._note_cut(replace(outcome, usage=relay.usage))
        return outcome

    async def _passed(self, response: UpstreamResponse) -> Broken | Served:
        def commit() -> Headers:
            self._commit(response)
            told = discreet(response.headers, self._target.account.api_key)
            return passed_headers(self._call, self._gear.policy, told)

        passage = Passage(
            self._call,
            self._target,
            self._client,
            policy=self._gear.policy,
            commit=commit,
            deadline=self._deadline,
        )
        try:
            outcome = await passage.run(response)
        finally:
            self._recorder.usage(passage.usage)
        if isinstance(outcome, Served):
            self._note_cut(outcome)
        return outcome

    def _note_cut(self, served: Served) -> None:
        """An answer that broke off behind the commit point is a failure like any other."""
        if served.cut is not None:
            verdict = self._recorder.cut(served.cut, served.usage)
            with turns_told(self._gear, self._call, self._target):
                self._gear.health.failed(self._target, verdict)

    async def _error(self, response: UpstreamResponse) -> Broken:
        """Read an error answer, for the classifier and in case it is the last; a slow body is cut, not waited for."""
        if response.status not in STATUSES:
            return Broken(self._target.failure(fault=Fault.PROTOCOL))
        parts: list[bytes] = []
        policy = self._gear.policy
        try:
            with self._client.alarm.until(min(self._time() + policy.error_body_s, self._deadline)):
                await response.read(policy.max_body, parts)
        except (TimeoutError, UpstreamFailed):
            pass  # the status alone is a verdict; what came of the body is kept
        body = b"".join(parts)
        failure = self._target.failure(response.status, headers=response.headers, body=body[:CLASSIFIED])
        told = discreet(response.headers, self._target.account.api_key)
        return Broken(failure, Answer(response.status, told, body[: policy.max_body]))

    async def _whole(self, response: UpstreamResponse) -> Broken | Served:
        body, limit = response.whole, self._gear.policy.max_body
        if body is None:
            pulled = await self._pull(response, limit)
            if isinstance(pulled, Broken):
                return pulled
            body = pulled
        if len(body) > limit:
            return Broken(self._target.failure(fault=Fault.PROTOCOL), message="the upstream's answer is too large")
        judged = self._judged(body)
        if isinstance(judged, Broken):
            return judged
        self._commit(response)
        self._recorder.usage(judged if judged is not None else self._estimate(body))
        await self._client.whole(response.status, self._head(response), body)
        return Served(judged)

    async def _pull(self, response: UpstreamResponse, limit: int) -> bytes | Broken:
        parts: list[bytes] = []
        since = self._time()
        try:
            with self._client.alarm.until(self._deadline):
                await response.read(limit, parts)
        except UpstreamFailed as exc:
            return Broken(self._target.failure(fault=exc.fault))
        except TimeoutError:
            return Broken(self._target.failure(fault=Fault.TIMEOUT_TOTAL))
        finally:
            self._call.ledger.upstream_s += self._time() - since
        return b"".join(parts)

    def _judged(self, body: bytes) -> Broken | Usage | None:
        """Return what a whole answer reports when it may go to the client, else what is wrong with it."""
        if len(body) > LARGE and not self._call.gates and self._call.route != EMBEDDINGS:
            usage = read_usage({"usage": glance(body)})
            if usage is not None:
                return usage
        value = json.decoded(body)
        usage = read_usage(value)
        plain = chat.is_plain(value) and self._call.route != EMBEDDINGS
        broken = None if plain else self._refused(body, value, usage)
        if broken is None and self._call.gates and self._rejected(value):
            broken = self._leak(body, usage)
        return broken or usage

    def _refused(self, body: bytes, value: object, usage: Usage | None) -> Broken | None:
        """Return why a whole answer, decoded, is none."""
        error = chat.error_of(value)
        if error is not None:
            failure = self._target.failure(chat.error_code(error), body=body[:CLASSIFIED], in_band=True)
            return Broken(failure, usage=usage, message=chat.error_message(error))
        if not (chat.is_embedding(value) if self._call.route == EMBEDDINGS else chat.is_completion(value)):
            fault = Fault.NOT_A_COMPLETION if body.strip() else Fault.EMPTY
            return Broken(self._target.failure(fault=fault, body=body[:CLASSIFIED]), usage=usage)
        return None if chat.failed_call(value) is None else self._leak(body, usage)

    def _leak(self, body: bytes, usage: Usage | None) -> Broken:
        failure = self._target.failure(fault=Fault.LEAK, body=body[:CLASSIFIED])
        return Broken(failure, usage=usage or self._estimate(body), left=body)

    def _rejected(self, value: object) -> bool:
        """Let every gate judge; return whether one of them rejects."""
        can_reject, rejected = self._target.can_reject, False
        for gate in self._call.gates:
            rejected = gate.judge(value, can_reject) is GateVerdict.REJECT or rejected
        return rejected

    def _head(self, response: UpstreamResponse) -> Headers:
        return commit_headers(self._call, self._gear.policy, response.headers, self._target.account.api_key)

    def _estimate(self, body: bytes) -> Usage:
        """Guess the usage of an answer that reports none; vectors are no output tokens."""
        needs = self._call.needs
        written = 0 if self._call.route == EMBEDDINGS else len(body)
        return estimate(needs.est_tokens if needs is not None else 0, written)

    def _commit(self, response: UpstreamResponse) -> None:
        """The commit point: from here on this upstream serves the request, and no other."""
        gear, call, target, ledger = self._gear, self._call, self._target, self._call.ledger
        if ledger.told:
            with turns_told(gear, call, target):
                gear.health.succeeded(target)
        else:
            gear.health.succeeded(target)
        gear.desk.succeeded(target.account)
        gear.auto.served(call.remember, target)
        took_s = gear.clock.monotonic() - call.started
        ledger.serve(target.provider.id, target.candidate.model, target.account.name)
        ledger.overhead_s = took_s - ledger.upstream_s if took_s > ledger.upstream_s else 0.0
        ledger.first_token_s = took_s
        self._recorder.served(response.status)
        if ledger.told:
            ledger.say(f"commit {target.candidate.spec} #{target.account.name} after {took_s * 1000:.0f} ms")
