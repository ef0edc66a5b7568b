"""One attempt: one request to one account of one member, timed, read, judged and recorded.

The in-flight place and the upstream's response are held to the last byte, and given back whatever happens: a hang-up, a
deadline or a bug.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

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
from troyproxy.proxy.reader import read_whole
from troyproxy.proxy.recording import Recorder
from troyproxy.proxy.relay import StreamRelay
from troyproxy.proxy.report import commit_headers, passed_headers
from troyproxy.proxy.trace_headers import trace_headers
from troyproxy.proxy.turns import turns_told
from troyproxy.resilience.faults import Fault
from troyproxy.wire import chat, json
from troyproxy.wire.headers import build_headers

CLASSIFIED: Final = 64 * 1024
"""Bytes of an error body that the classifier reads; the client gets all of it."""
EMBEDDINGS: Final = "/v1/embeddings"
STATUSES: Final = range(200, 600)
"""What ends a request in HTTP (RFC 9110, section 15). Servers refuse to write any other, so none can be passed on."""


class Attempt:
    """Runs once. Whatever it returns, the upstream's response is closed and the place given back."""

    def __init__(self, gear: Gear, call: Call, target: Target, client: Client, recorder: Recorder) -> None:
        self._gear, self._call, self._target = gear, call, target
        self._client, self._recorder = client, recorder
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + target.limit_s

    async def run(self, body: bytes) -> Broken | Served:
        """Send *body* and return what came of it. Raises ClientGone; a cancellation passes."""
        with self._gear.desk.slot(self._target.account):
            response = await self._send(body)
            if isinstance(response, Broken):
                return response
            try:
                return await self._read(response)
            finally:
                await response.aclose()

    async def _send(self, body: bytes) -> UpstreamResponse | Broken:
        """Return the response when its head is there. Nothing behind this line may be taken for a slow head."""
        since = self._loop.time()
        own_s = self._gear.policy.first_byte_of(self._target.provider, stream=self._call.stream)
        try:
            async with asyncio.timeout_at(min(since + own_s, self._deadline)):
                return await self._gear.upstream.send(self._request(body))
        except UpstreamFailed as exc:
            return Broken(self._target.failure(fault=exc.fault, body_sent=exc.body_sent))
        except TimeoutError:
            fault = Fault.TIMEOUT_FIRST_BYTE if self._call.stream else Fault.TIMEOUT_TOTAL
            return Broken(self._target.failure(fault=fault))
        finally:
            self._call.ledger.upstream_s += self._loop.time() - since

    def _request(self, body: bytes) -> UpstreamRequest:
        target, call = self._target, self._call
        return UpstreamRequest(
            provider=target.provider,
            method="POST",
            path=call.upstream_path,
            headers=build_headers(
                target.provider,
                target.account.api_key,
                self._client_headers(),
                call.request_id,
                content_type=None if call.passing else b"application/json",
                extra=trace_headers(call),
            ),
            body=body,
            connect_s=self._gear.policy.connect_of(target.provider),
        )

    def _client_headers(self) -> Headers:
        """Return the client's headers but those that hold its key: some pages put theirs into their own address."""
        call = self._call
        key = presented_key(call.headers) if call.key is not None else None
        return call.headers if key is None else tuple(pair for pair in call.headers if key not in pair[1])

    async def _read(self, response: UpstreamResponse) -> Broken | Served:
        self._gear.measuring.heard(self._target.account, response.headers)
        if response.status not in STATUSES:
            return Broken(self._target.failure(fault=Fault.PROTOCOL))
        if not 200 <= response.status < 300:
            return await self._error(response)
        if self._call.passing:
            return await self._passed(response)
        return await (self._stream(response) if self._call.stream else self._whole(response))

    async def _stream(self, response: UpstreamResponse) -> Broken | Served:
        async def commit() -> None:
            self._commit(response)
            await self._client.open(response.status, self._head(response))

        left_s = max(0.001, self._deadline - self._loop.time())
        target = replace(self._target, limit_s=left_s)
        relay = StreamRelay(self._call, target, self._client, self._recorder, commit)
        try:
            outcome = await relay.run(response)
        finally:
            self._account_for(relay.usage)
        if isinstance(outcome, Served):
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
            self._account_for(passage.usage)
        if isinstance(outcome, Served):
            self._note_cut(outcome)
        return outcome

    def _note_cut(self, served: Served) -> None:
        """An answer that broke off behind the commit point is a failure like any other."""
        if served.cut is not None:
            verdict = self._recorder.cut(served.cut, served.usage)
            with turns_told(self._gear, self._call, self._target):
                self._gear.health.failed(self._target, verdict)

    def _account_for(self, usage: Usage | None) -> None:
        """Write down what the upstream reported, for whoever got it."""
        self._recorder.usage(usage)
        if self._call.ledger.served:
            self._call.ledger.usage = usage

    async def _error(self, response: UpstreamResponse) -> Broken:
        """Read an error answer, for the classifier and in case it is the last; a slow body is cut, not waited for."""
        body = bytearray()
        policy = self._gear.policy
        try:
            async with asyncio.timeout_at(min(self._loop.time() + policy.error_body_s, self._deadline)):
                await read_whole(response, limit=policy.max_body, into=body)
        except (TimeoutError, UpstreamFailed):
            pass  # the status alone is a verdict; what came of the body is kept
        failure = self._target.failure(response.status, headers=response.headers, body=bytes(body[:CLASSIFIED]))
        told = discreet(response.headers, self._target.account.api_key)
        return Broken(failure, Answer(response.status, told, bytes(body[: policy.max_body])))

    async def _whole(self, response: UpstreamResponse) -> Broken | Served:
        body = bytearray()
        since = self._loop.time()
        try:
            async with asyncio.timeout_at(self._deadline):
                fits = await read_whole(response, limit=self._gear.policy.max_body, into=body)
        except UpstreamFailed as exc:
            return Broken(self._target.failure(fault=exc.fault))
        except TimeoutError:
            return Broken(self._target.failure(fault=Fault.TIMEOUT_TOTAL))
        finally:
            self._call.ledger.upstream_s += self._loop.time() - since
        if not fits:
            return Broken(self._target.failure(fault=Fault.PROTOCOL), message="the upstream's answer is too large")
        return await self._judge(response, bytes(body))

    async def _judge(self, response: UpstreamResponse, body: bytes) -> Broken | Served:
        value = _decoded(body)
        usage = read_usage(value)
        error = chat.error_of(value)
        if error is not None:
            failure = self._target.failure(chat.error_code(error), body=body[:CLASSIFIED], in_band=True)
            return Broken(failure, usage=usage, message=chat.error_message(error))
        if not _is_answer(self._call.route, value):
            fault = Fault.NOT_A_COMPLETION if body.strip() else Fault.EMPTY
            return Broken(self._target.failure(fault=fault, body=body[:CLASSIFIED]), usage=usage)
        if chat.failed_call(value) is not None:
            failure = self._target.failure(fault=Fault.LEAK, body=body[:CLASSIFIED])
            return Broken(failure, usage=usage or self._estimate(body))
        can_reject = self._target.can_reject
        verdicts = [gate.judge(value, can_reject) for gate in self._call.gates]
        if GateVerdict.REJECT in verdicts:
            failure = self._target.failure(fault=Fault.LEAK, body=body[:CLASSIFIED])
            return Broken(failure, usage=usage or self._estimate(body))
        self._commit(response)
        self._account_for(usage or self._estimate(body))
        await self._client.whole(response.status, self._head(response), body)
        return Served(usage)

    def _head(self, response: UpstreamResponse) -> Headers:
        told = discreet(response.headers, self._target.account.api_key)
        return commit_headers(self._call, self._gear.policy, told)

    def _estimate(self, body: bytes) -> Usage:
        """Guess the usage of an answer that reports none; vectors are no output tokens."""
        needs = self._call.needs
        written = 0 if self._call.route == EMBEDDINGS else len(body)
        return estimate(needs.est_tokens if needs is not None else 0, written)

    def _commit(self, response: UpstreamResponse) -> None:
        """The commit point: from here on this upstream serves the request, and no other."""
        gear, call, target = self._gear, self._call, self._target
        with turns_told(gear, call, target):
            gear.health.succeeded(target)
        gear.desk.succeeded(target.account)
        gear.auto.served(call.remember, target)
        now = gear.clock.monotonic()
        ledger = call.ledger
        ledger.serve(target.provider.id, target.candidate.model, target.account.name)
        ledger.overhead_s = max(0.0, now - call.started - ledger.upstream_s)
        ledger.first_token_s = now - call.started
        self._recorder.served(response.status)
        ledger.say(f"commit {target.candidate.spec} #{target.account.name} after {ledger.first_token_s * 1000:.0f} ms")


def _decoded(body: bytes) -> object:
    try:
        return json.decode(body)
    except json.MalformedJSON:
        return None


def _is_answer(route: str, value: object) -> bool:
    return chat.is_embedding(value) if route == EMBEDDINGS else chat.is_completion(value)
