"""How many tokens a request is charged: the estimate at first, afterwards what it really used."""

from __future__ import annotations

from troyproxy.proxy.call import Call
from troyproxy.resilience.classes import ErrorClass


def estimated(call: Call) -> int:
    """Return the estimate; 0 where a route has none."""
    return call.needs.est_tokens if call.needs is not None else 0


def tokens_used(call: Call) -> int:
    """Return what upstreams reported for this request, whoever got it.

    Where none did: the estimate if one served, or was at it when the client left, since it may have been billed; else
    nothing was used.
    """
    ledger = call.ledger
    reported = [usage for usage in (ledger.usage, ledger.wasted) if usage is not None]
    if reported:
        return sum(usage.total for usage in reported)
    cut_off = bool(ledger.attempts) and ledger.attempts[-1].outcome == ErrorClass.CANCELLED
    return estimated(call) if ledger.served or cut_off else 0
