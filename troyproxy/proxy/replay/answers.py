"""Upstream answers that mean what a recorded attempt meant: made up so that the classifier comes to the same class.

A record holds no body; each class has one here that says nothing else. That they agree with the classifier is a test.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from troyproxy.accounting.records import AttemptRecord
from troyproxy.accounting.usage import Usage
from troyproxy.ports import Ear, Headers, UpstreamFailed, gathered
from troyproxy.proxy.call import STREAMLESS, Call
from troyproxy.resilience.classes import DENIED_S, QUOTA_PHRASE_S, ErrorClass
from troyproxy.resilience.faults import Fault
from troyproxy.wire import json

JSON: Final = (b"content-type", b"application/json")
EVENTS: Final = (b"content-type", b"text/event-stream")
SOUND: Final = (b"content-type", b"application/octet-stream")
DONE: Final = b"data: [DONE]\n\n"
_FAULTS: Final[Mapping[str, Fault]] = {fault.value.replace("_", " "): fault for fault in Fault}
_UNSENT: Final = frozenset({Fault.CONNECT, Fault.TLS, Fault.TIMEOUT_CONNECT})
"""Faults before the request went out."""

Part = tuple[float, bytes | UpstreamFailed]
"""Seconds to wait, and what comes then."""


@dataclass(slots=True)
class Answer:
    """`ports.UpstreamResponse` whose parts come in time."""

    whole: ClassVar[bytes | None] = None

    status: int = 200
    headers: Headers = (JSON,)
    parts: Sequence[Part] = ()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body in time. Raises UpstreamFailed."""
        for wait_s, part in self.parts:
            await asyncio.sleep(wait_s)
            if isinstance(part, UpstreamFailed):
                raise part
            yield part

    async def read(self, limit: int, into: list[bytes], /) -> bool:
        """Put the body into *into*, unless it is over *limit* bytes."""
        return await gathered(self.chunks(), limit, into)

    def listen(self, ear: Ear, /) -> None:
        """Offer nothing."""

    async def aclose(self) -> None:
        """Nothing is open."""


def fault_of(attempt: AttemptRecord) -> Fault | None:
    """Return how the transport failed, which the reason of the record says; None when there was an answer."""
    fault = _FAULTS.get(attempt.reason.partition(":")[0])
    if fault is not None and attempt.outcome == _OF_FAULT.get(fault, ErrorClass.TRANSIENT):
        return fault
    return None


_OF_FAULT: Final[Mapping[Fault, ErrorClass]] = {
    Fault.LEAK: ErrorClass.LEAK,
    Fault.SATURATED: ErrorClass.SATURATED,
    Fault.CANCELLED: ErrorClass.CANCELLED,
}


def failed(fault: Fault) -> UpstreamFailed:
    """Return the failure of a transport."""
    return UpstreamFailed(fault, body_sent=fault not in _UNSENT)


def refusal(attempt: AttemptRecord) -> Answer:
    """Return the error answer that the classifier takes for the class of *attempt*."""
    found = _told(attempt)
    status = attempt.status if attempt.status in found.statuses or found.any_status(attempt.status) else None
    body = json.encode({"error": _error(attempt)})
    return Answer(status or found.statuses[0], (JSON,), ((0.0, body),))


def _error(attempt: AttemptRecord) -> dict[str, object]:
    found = _told(attempt)
    error: dict[str, object] = {"message": found.message, "code": found.code}
    if attempt.hint_s is not None:
        error["retry_after_ms"] = attempt.hint_s * 1000
    return {name: value for name, value in error.items() if value is not None}


@dataclass(frozen=True, slots=True)
class _Words:
    """What a class is told by. *statuses*: those under which it is understood, the usual one first."""

    statuses: tuple[int, ...]
    code: str | None = None
    message: str = ""
    redirects: bool = False
    faults: bool = False
    """Every 5xx means it too."""

    def any_status(self, status: int | None) -> bool:
        """Whether *status* is one of a range that means it."""
        if status is None:
            return False
        return (self.redirects and 300 <= status < 400) or (self.faults and 500 <= status < 600 and status != 529)


_WORDS: Final[Mapping[str, _Words]] = {
    ErrorClass.REQUEST: _Words((400, 401, 402, 403, 404, 409, 413, 415, 422, 429, 451), "content_filter"),
    ErrorClass.MEMBER: _Words((404, 405, 413, 422), redirects=True),
    ErrorClass.CONTEXT: _Words((400, 413, 422), "context_length_exceeded"),
    ErrorClass.MODEL: _Words((404, 400, 401, 403, 405, 410), "model_not_found"),
    ErrorClass.AUTH: _Words((401, 400, 403), "invalid_api_key"),
    ErrorClass.QUOTA: _Words((402, 400, 401, 403, 429), "insufficient_quota", faults=True),
    ErrorClass.RATE: _Words((429, 400, 403), "rate_limit_exceeded", faults=True),
    ErrorClass.OVERLOAD: _Words((529, 429), "overloaded_error", faults=True),
    ErrorClass.SHORT: _Words((403, 400, 401), message="request not allowed"),
    ErrorClass.TRANSIENT: _Words((500, 408, 409, 425), faults=True),
    ErrorClass.LEAK: _Words((400,), "tool_use_failed"),
}
_DENIED: Final = _Words((403, 400, 401), "permission_denied")
_POOR: Final = _Words((429, 401, 403), message="quota exceeded")
"""Billing by a phrase: a shorter lock than by a code."""


def _told(attempt: AttemptRecord) -> _Words:
    if attempt.outcome == ErrorClass.AUTH and attempt.cooldown_s == DENIED_S:
        return _DENIED
    if attempt.outcome == ErrorClass.QUOTA and attempt.cooldown_s == QUOTA_PHRASE_S:
        return _POOR
    return _WORDS.get(attempt.outcome, _WORDS[ErrorClass.TRANSIENT])


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A good answer: its first output after *first_s*, its end after *whole_s*; *idle_s*: silences are shorter."""

    first_s: float
    whole_s: float
    usage: Usage = field(default_factory=Usage)
    idle_s: float = 30.0
    cut: AttemptRecord | None = None
    """How it breaks off instead of ending."""


def served(call: Call, serving: Serving) -> Answer:
    """Return a good answer to *call*, or the beginning of one."""
    if call.stream:
        return Answer(200, (EVENTS,), _events(serving))
    if serving.cut is not None:  # JSON is held whole, so only what flows can break off
        rest_s = max(0.0, serving.whole_s - serving.first_s)
        return Answer(200, (SOUND,), ((serving.first_s, b"\0"), (rest_s, failed(fault_of(serving.cut) or Fault.RESET))))
    return Answer(200, (JSON,), ((serving.whole_s, json.encode(_whole(call, serving.usage))),))


def _events(serving: Serving) -> Sequence[Part]:
    parts: list[Part] = [(serving.first_s, _event(_choice("."), None))]
    left_s = max(0.0, serving.whole_s - serving.first_s)
    while left_s > serving.idle_s:
        parts.append((serving.idle_s, _event(_choice("."), None)))
        left_s -= serving.idle_s
    if serving.cut is None:
        end = _event({**_choice(""), "finish_reason": "stop"}, serving.usage) + DONE
        return [*parts, (left_s, end)]
    fault = fault_of(serving.cut)
    if fault is not None:
        return [*parts, (left_s, failed(fault))]
    return [*parts, (left_s, b"data: " + json.encode({"error": _error(serving.cut)}) + b"\n\n")]


def _choice(text: str) -> dict[str, object]:
    return {"index": 0, "delta": {"content": text}, "finish_reason": None}


def _event(choice: Mapping[str, object], usage: Usage | None) -> bytes:
    told = {"choices": [choice], **({"usage": _counts(usage)} if usage is not None else {})}
    return b"data: " + json.encode(told) + b"\n\n"


def _whole(call: Call, usage: Usage) -> dict[str, object]:
    counts = _counts(usage)
    if call.route in STREAMLESS:
        return {"object": "list", "data": [{"embedding": [0.0]}], "usage": counts}
    message = {"role": "assistant", "content": "."}
    choice = {"index": 0, "message": message, "text": ".", "finish_reason": "stop"}
    return {"object": "chat.completion", "choices": [choice], "usage": counts}


def _counts(usage: Usage) -> dict[str, object]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
