"""From a finished call to the row that is kept of it."""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from hashlib import sha256
from typing import Final

from troyproxy.accounting.price import cost_usd
from troyproxy.accounting.records import UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.proxy.call import Call
from troyproxy.proxy.memory import session_of
from troyproxy.resilience.classes import ErrorClass
from troyproxy.routing.needs import Needs
from troyproxy.wire.traceparent import trace_id_of

ROUTING: Final = (
    b"x-troy-provider",
    b"x-troy-wants-tools",
    b"x-troy-mode",
    b"x-troy-budget-usd",
    b"x-troy-budget-policy",
    b"x-troy-task",
)
"""Request headers by which a client changes where it is routed."""
SESSION: Final = "x-troy-session"
NEEDS: Final = tuple(field.name for field in fields(Needs))
LEAK: Final = str(ErrorClass.LEAK)
PLAIN: Final = re.compile(r"[\w./:-]{1,64}", re.ASCII)
"""The values that are kept: what routing could mean something by, and no text."""


def row_of(call: Call, *, duration_s: float) -> UsageRow:
    """Return what is kept: no prompt, no completion, no secret."""
    ledger = call.ledger
    requested = call.payload.get("model")
    return UsageRow(
        request_id=call.request_id,
        at=call.at,
        route=call.route,
        key_id=call.key.id if call.key is not None else None,
        key_name=call.key.name if call.key is not None else None,
        requested_model=requested[:200] if isinstance(requested, str) else "",
        combo=call.combo_name,
        strategy=call.strategy,
        stream=call.stream,
        status=499 if call.client_left else ledger.status,
        outcome=outcome_of(call),
        provider=ledger.provider,
        model=ledger.model,
        account=ledger.account,
        attempts=tuple(ledger.attempts),
        skipped=tuple((skip.spec, str(skip.reason)) for skip in ledger.skipped),
        seed=call.seed,
        needs=_needs(call),
        est_tokens=call.needs.est_tokens if call.needs is not None else 0,
        usage=ledger.usage,
        wasted=ledger.wasted,
        cost_usd=cost_of(call),
        duration_ms=duration_s * 1000,
        overhead_ms=_ms(ledger.overhead_s),
        first_token_ms=_ms(ledger.first_token_s),
        trail=ledger.trail,
        trace_id=call.traced.trace_id if call.traced is not None else trace_id_of(call.header(b"traceparent") or ""),
        traced=call.traced,
        adapted=",".join(ledger.adapted),
    )


def outcome_of(call: Call) -> str:
    """Return how the request ended, in the words of the metrics."""
    ledger = call.ledger
    if call.client_left:
        return "cancelled"
    if ledger.truncated:
        return "truncated"
    if ledger.served:
        return "ok"
    if ledger.refused or all(attempt.handoff for attempt in ledger.attempts):
        return "client_error" if ledger.status < 500 else "refused"
    return "client_error" if ledger.status in {400, 404, 413, 422} else "upstream_error"


def cost_of(call: Call) -> float | None:
    """Return what the answer cost in USD, and with it a hand-off's summary, and answers that leaked their tool call.

    A part whose price or usage is not known is left out; None when no part is known.
    """
    ledger = call.ledger
    parts = [(a.provider, a.model, a.usage) for a in ledger.attempts if a.handoff or a.outcome == LEAK]
    if ledger.provider is not None and ledger.model is not None:
        parts.append((ledger.provider, ledger.model, ledger.usage))
    known = [usd for part in parts if (usd := _cost(call, *part)) is not None]
    return sum(known) if known else None


def _cost(call: Call, provider: str, model: str, usage: Usage | None) -> float | None:
    found = call.snapshot.providers.get(provider)
    if found is None or usage is None:
        return None
    price = found.model(model).price
    return cost_usd(usage, price.input, price.output, price.cached)


def _needs(call: Call) -> dict[str, object]:
    """Return what the request needs and, where there is any, what else its routing went by."""
    if call.needs is None:
        return {}
    told = ((name, call.header(name)) for name in ROUTING)
    headers = {name.decode(): value for name, value in told if value and PLAIN.fullmatch(value)}
    session = session_of(call)
    if session:  # whoever chose it may have put a name into it; that two are the same is all that matters
        headers[SESSION] = sha256(session.encode("utf-8", "replace")).hexdigest()[:16]
    gist = {} if call.gist is None else {"auto": asdict(call.gist)}
    needs = {name: getattr(call.needs, name) for name in NEEDS}  # plain values: `asdict` would copy each
    return {**needs, **({"headers": headers} if headers else {}), **gist}


def _ms(seconds: float | None) -> float | None:
    return seconds * 1000 if seconds is not None else None
