"""One call to a model that sums up a conversation: through the same door as an attempt, timed and recorded like one.

Its success and its failure are the model's own, for circuits, locks and statistics; nothing of it goes to the client.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from troyproxy.accounting.usage import Usage, estimate, read_usage
from troyproxy.ports import UpstreamFailed, UpstreamRequest, UpstreamResponse
from troyproxy.proxy.attempt import CLASSIFIED, STATUSES
from troyproxy.proxy.call import Call
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.outcome import Broken, Target
from troyproxy.proxy.recording import Recorder
from troyproxy.proxy.trace_headers import trace_headers
from troyproxy.proxy.turns import turns_told
from troyproxy.resilience.faults import Fault
from troyproxy.wire import chat, json
from troyproxy.wire.heads import build_headers
from troyproxy.wire.summary import summary_in

PATH: Final = "/chat/completions"


@dataclass(frozen=True, slots=True)
class Summed:
    """A valid answer. *text* is empty when there is no summary in it."""

    status: int
    usage: Usage
    text: str


class Summariser:
    """Asks for the summary of one request."""

    def __init__(self, gear: Gear, call: Call, recorder: Recorder) -> None:
        self._gear, self._call, self._recorder = gear, call, recorder
        self._loop = asyncio.get_running_loop()

    async def ask(self, target: Target, body: bytes) -> str:
        """Send *body* to *target* once and return the summary, "" without one. A cancellation passes."""
        outcome: Summed | Broken | None = None
        try:
            with self._recorder.attempt(target, handoff=True), self._gear.desk.slot(target.account):
                outcome = await self._ask(target, body)
                self._note(target, outcome)
        finally:
            if outcome is None and target.probe:
                self._gear.health.return_probe(target)
        return outcome.text if isinstance(outcome, Summed) else ""

    def _note(self, target: Target, outcome: Summed | Broken) -> None:
        if isinstance(outcome, Broken):
            verdict = self._recorder.broken(outcome)
            with turns_told(self._gear, self._call, target):
                self._gear.health.failed(target, verdict)
            return
        with turns_told(self._gear, self._call, target):
            self._gear.health.succeeded(target)
        self._gear.desk.succeeded(target.account)
        self._recorder.served(outcome.status)
        self._recorder.usage(outcome.usage)

    async def _ask(self, target: Target, body: bytes) -> Summed | Broken:
        since = self._loop.time()
        try:
            async with asyncio.timeout_at(since + target.limit_s):
                response = await self._gear.upstream.send(self._request(target, body))
            self._gear.measuring.heard(target.account, response.headers)
            try:
                async with asyncio.timeout_at(since + target.limit_s):
                    return await self._read(target, response, len(body))
            finally:
                await response.aclose()
        except UpstreamFailed as exc:
            return Broken(target.failure(fault=exc.fault, body_sent=exc.body_sent))
        except TimeoutError:
            return Broken(target.failure(fault=Fault.TIMEOUT_TOTAL))
        finally:
            self._call.ledger.upstream_s += self._loop.time() - since

    def _request(self, target: Target, body: bytes) -> UpstreamRequest:
        """Return the request: nothing that the client sent along goes with it, but the request's id."""
        provider, call = target.provider, self._call
        return UpstreamRequest(
            provider=provider,
            method="POST",
            path=PATH,
            headers=build_headers(
                provider,
                target.account.api_key,
                (),
                call.request_id,
                content_type=b"application/json",
                extra=trace_headers(call),
            ),
            body=body,
            connect_s=self._gear.policy.connect_of(provider),
        )

    async def _read(self, target: Target, response: UpstreamResponse, asked: int) -> Summed | Broken:
        parts: list[bytes] = []
        fits = await response.read(self._gear.policy.max_body, parts)
        body = b"".join(parts)
        if not fits or response.status not in STATUSES:
            return Broken(target.failure(fault=Fault.PROTOCOL))
        if not 200 <= response.status < 300:
            told = body[:CLASSIFIED]
            return Broken(target.failure(response.status, headers=response.headers, body=told))
        return _judged(target, response.status, body, asked)


def _judged(target: Target, status: int, body: bytes, asked: int) -> Summed | Broken:
    """Return what a whole answer is; *asked* are the bytes of the question."""
    value = _decoded(body)
    usage = read_usage(value)
    error = chat.error_of(value)
    if error is not None:
        failure = target.failure(chat.error_code(error), body=body[:CLASSIFIED], in_band=True)
        return Broken(failure, usage=usage)
    if not chat.is_completion(value):
        fault = Fault.NOT_A_COMPLETION if body.strip() else Fault.EMPTY
        return Broken(target.failure(fault=fault, body=body[:CLASSIFIED]), usage=usage)
    guessed = estimate(estimate(0, asked).output, len(body))
    return Summed(status, usage or guessed, summary_in(value))


def _decoded(body: bytes) -> object:
    try:
        return json.decode(body)
    except json.MalformedJSON:
        return None
