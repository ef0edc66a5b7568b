"""How a walk ends without a served answer: the last upstream's words, or ours, told in the way that is still open."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from troyproxy.errors import TroyError, UpstreamTimeout, type_of
from troyproxy.ports import Headers
from troyproxy.proxy.call import Call
from troyproxy.proxy.client import Client
from troyproxy.proxy.exhausted import NO_RETRY, advice, own_error, verbatim_body, verbatim_headers
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.masking import masked
from troyproxy.proxy.outcome import Answer, Broken, Target
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.report import JSON, exposed, story
from troyproxy.resilience.classify import Verdict
from troyproxy.wire import chat, json
from troyproxy.wire.sse import Frame

NO_STORE: Final = (b"cache-control", b"no-store")
LARGE: Final = 256 * 1024
"""Bytes of an error body from which on it is masked in a thread."""


class Ending:
    """Answers the client of one request that no upstream served."""

    def __init__(self, gear: Gear, planner: Planner, call: Call, client: Client) -> None:
        self._gear, self._planner, self._call, self._client = gear, planner, call, client

    async def stopped(self, broken: Broken, target: Target, verdict: Verdict) -> None:
        """Pass on a failure that another target would only repeat."""
        await self._tell(broken, target, verdict, advice([verdict], None))

    async def exhausted(self, broken: Broken | None, target: Target | None, verdicts: Sequence[Verdict]) -> None:
        """Nobody is left: the last failure, with the earliest moment at which a new request would find somebody."""
        if broken is None or target is None:
            await self.error(self._untried())
            return
        await self._tell(broken, target, verdicts[-1], advice(verdicts, self._planner.retry_in_s(self._call)))

    def _untried(self) -> TroyError:
        call = self._call
        if not call.ledger.skipped:
            return UpstreamTimeout("the request's deadline passed before an upstream could be called")
        return self._planner.unavailable(call, self._planner.members(call), call.ledger.skipped)

    async def _tell(self, broken: Broken, target: Target, verdict: Verdict, extra: Headers) -> None:
        error = own_error(broken, verdict, self._gear.policy)
        original = broken.answer.status if broken.answer is not None else broken.failure.status
        if error is not None:
            if original is not None:
                extra = (*extra, (b"x-troy-upstream-status", str(original).encode()))
            await self.error(error, extra, target)
        elif broken.answer is not None:
            await self._verbatim(broken.answer, target, extra)

    async def _verbatim(self, answer: Answer, target: Target, extra: Headers) -> None:
        if len(answer.body) > LARGE:  # masking reads every byte, and must not hold up everybody else's streams
            body = await asyncio.to_thread(verbatim_body, answer, self._call, target.provider)
        else:
            body = verbatim_body(answer, self._call, target.provider)
        if self._client.started:
            message = _message_in(body) or f"the upstream answered {answer.status}"
            await self._in_band(message, answer.status, "upstream_error", extra)
            return
        head = (*verbatim_headers(answer), *extra, *story(self._call, self._gear.policy))
        await self._client.whole(answer.status, exposed(head, self._gear.policy), body)

    async def error(self, error: TroyError, extra: Headers = (), target: Target | None = None) -> None:
        """Answer with one of our own errors; secrets that an upstream's words brought along are masked."""
        body = json.encode(error.envelope(quiet=self._call.quiet))
        if target is not None:
            body = masked(body, self._call.snapshot, target.provider)
        own = tuple((name.encode("ascii"), value.encode("latin-1")) for name, value in error.headers.items())
        extra = (*(pair for pair in own if pair[0] not in {name for name, _ in extra}), *extra)
        if self._client.started:
            await self._in_band(_message_in(body), error.http_status, error.http_code, extra)
            return
        head = (JSON, NO_STORE, *extra, *story(self._call, self._gear.policy))
        await self._client.whole(error.http_status, exposed(head, self._gear.policy), body)

    async def _in_band(self, message: str, status: int, code: str, extra: Headers) -> None:
        """The head is out (early commit): the failure can only be told as an event."""
        event = chat.error_event(
            message=message,
            type=type_of(status),
            code=code,
            request_id=self._call.request_id,
            attempts=len(self._call.ledger.attempts),
            retryable=NO_RETRY not in extra,
        )
        await self._client.frames([Frame(raw=event, data=event[6:].strip())], more=False)


def _message_in(body: bytes) -> str:
    """Return the message of the error in a body, "" when it has none."""
    try:
        value = json.decode(body)
    except json.MalformedJSON:
        return ""
    error = value.get("error") if isinstance(value, dict) else None
    return chat.error_message(error) if isinstance(error, dict | str) else ""
