"""From a finished call to the row that is kept of it."""

from __future__ import annotations

import re
from dataclasses import asdict
from hashlib import sha256
from typing import Final

from troyproxy.accounting.price import cost_usd
from troyproxy.accounting.records import UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.proxy.call import Call
from troyproxy.proxy.memory import SESSION_FIELDS, session_of
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
TELLING: Final = frozenset({*ROUTING, SESSION.encode()})
TELLING_FIELDS: Final = frozenset({"metadata", *SESSION_FIELDS})
"""Headers and members of the body; a request without any of them told nothing but its needs."""
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
        skipped=tuple([(skip.spec, str(skip.reason)) for skip in ledger.skipped]) if ledger.skipped else (),
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
        trace_id=_trace_id(call),
        traced=call.traced,
        adapted=",".join(ledger.adapted) if ledger.adapted else "",
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
    known: float | None = None
    for attempt in ledger.attempts:
        if attempt.handoff or attempt.outcome == LEAK:
            known = _added(known, _cost(call, attempt.provider, attempt.model, attempt.usage))
    if ledger.provider is not None and ledger.model is not None:
        known = _added(known, _cost(call, ledger.provider, ledger.model, ledger.usage))
    return known


def _added(known: float | None, more: float | None) -> float | None:
    return known if more is None else more + (known or 0.0)


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
    found = _plain(call.needs)
    if call.sends(TELLING) or not TELLING_FIELDS.isdisjoint(call.payload):
        headers = _told(call)
        if headers:
            found["headers"] = headers
    if call.gist is not None:
        found["auto"] = asdict(call.gist)
    return found


def _plain(needs: Needs) -> dict[str, object]:
    return {
        "tools": needs.tools,
        "vision": needs.vision,
        "json": needs.json,
        "audio": needs.audio,
        "est_tokens": needs.est_tokens,
        "max_output": needs.max_output,
    }


def _told(call: Call) -> dict[str, str]:
    """Return what the client said of its routing."""
    told = ((name, call.header(name)) for name in ROUTING)
    headers = {name.decode(): value for name, value in told if value and PLAIN.fullmatch(value)}
    session = session_of(call)
    if session:  # whoever chose it may have put a name into it; that two are the same is all that matters
        headers[SESSION] = sha256(session.encode("utf-8", "replace")).hexdigest()[:16]
    return headers


def _trace_id(call: Call) -> str | None:
    if call.traced is not None:
        return call.traced.trace_id
    given = call.header(b"traceparent")
    return None if given is None else trace_id_of(given)


def _ms(seconds: float | None) -> float | None:
    return seconds * 1000 if seconds is not None else None
