"""The answer when no upstream served: the last one's own status and body, or the gateway's error.

Verbatim but for two exceptions: an upstream's 401, 402 or 403 about *our* credential becomes 502 (clients would throw
their own key away), and secrets are masked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from troyproxy.catalog.providers import Provider
from troyproxy.errors import (
    LeakedToolCall,
    Overloaded,
    TroyError,
    UpstreamAuth,
    UpstreamError,
    UpstreamInvalid,
    UpstreamTimeout,
    UpstreamUnreachable,
    retry_after,
)
from troyproxy.ports import Headers
from troyproxy.proxy.call import Call
from troyproxy.proxy.masking import masked
from troyproxy.proxy.outcome import Answer, Broken
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.classify import Verdict
from troyproxy.resilience.faults import Fault
from troyproxy.wire.headers import to_client

CREDENTIAL: Final = frozenset({ErrorClass.AUTH, ErrorClass.QUOTA})
INCURABLE: Final = frozenset(
    {ErrorClass.REQUEST, ErrorClass.MEMBER, ErrorClass.CONTEXT, ErrorClass.MODEL, ErrorClass.AUTH}
)
"""Classes that the same request meets again: clients are told not to retry."""
NO_RETRY: Final = (b"x-should-retry", b"false")
TIMEOUTS: Final = frozenset({Fault.TIMEOUT_CONNECT, Fault.TIMEOUT_FIRST_BYTE, Fault.TIMEOUT_IDLE, Fault.TIMEOUT_TOTAL})
INVALID: Final = frozenset({Fault.EMPTY, Fault.NOT_A_COMPLETION, Fault.PROTOCOL})


def own_error(broken: Broken, verdict: Verdict, policy: WalkPolicy) -> TroyError | None:
    """Return the gateway's error for the last failure, or None when the upstream's answer goes out as it is."""
    status = broken.answer.status if broken.answer is not None else broken.failure.status
    if policy.mask_auth and status in {401, 402, 403} and verdict.error_class in CREDENTIAL:
        return UpstreamAuth("the upstream refused the gateway's credential; this is for its operator to mend")
    if broken.answer is not None:
        redirect = 300 <= broken.answer.status < 400
        return UpstreamInvalid("the upstream answered with a redirect, which is never followed") if redirect else None
    if broken.failure.in_band:
        return UpstreamError(broken.message or "the upstream reported an error", upstream_status=status)
    return _fault_error(broken)


def _fault_error(broken: Broken) -> TroyError:
    fault = broken.failure.fault
    if fault in TIMEOUTS:
        return UpstreamTimeout("the upstream did not answer in time")
    if fault is Fault.LEAK:
        return LeakedToolCall("the model wrote its tool call as text")
    if fault is Fault.SATURATED:
        return Overloaded("the gateway's connections to the upstream are all in use")
    if fault in INVALID:
        return UpstreamInvalid(broken.message or "the upstream's answer is no completion")
    return UpstreamUnreachable("the upstream could not be reached")


def verbatim_headers(answer: Answer) -> Headers:
    """Return the head of an upstream's own error answer. A coding that the adapter could not undo is told."""
    coded = tuple((name, value) for name, value in answer.headers if name == b"content-encoding")
    return (*to_client(answer.headers), *coded, (b"cache-control", b"no-store"))


def verbatim_body(answer: Answer, call: Call, provider: Provider) -> bytes:
    """Return the upstream's error body with secrets masked."""
    return masked(answer.body, call.snapshot, provider)


def curable(verdicts: Iterable[Verdict]) -> bool:
    """Whether the same request may fare better later: some failure was not its own, nor the configuration's."""
    return any(verdict.error_class not in INCURABLE for verdict in verdicts)


def advice(verdicts: Iterable[Verdict], retry_in_s: float | None) -> Headers:
    """Return what a client should do next: when to retry, or not to."""
    found: list[tuple[bytes, bytes]] = []
    if retry_in_s is not None:
        found.append((b"retry-after", retry_after(retry_in_s).encode()))
    if not curable(verdicts):
        found.append(NO_RETRY)
    return tuple(found)
