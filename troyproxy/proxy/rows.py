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
from troyproxy.proxy.ledger import Ledger
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
TRACEPARENT: Final = b"traceparent"
TELLING: Final = frozenset({*ROUTING, SESSION.encode()})
TELLING_FIELDS: Final = frozenset({"metadata", *SESSION_FIELDS})
"""Headers and members of the body; a request without any of them told nothing but its needs."""
LEAK: Final = str(ErrorClass.LEAK)
PLAIN: Final = re.compile(r"[\w./:-]{1,64}", re.ASCII)
"""The values that are kept: what routing could mean something by, and no text."""


def row_of(call: Call, *, duration_s: float) -> UsageRow:
    """Return what is kept: no prompt, no completion, no secret."""
    key, combo, ledger, requested = call.key, call.combo_name, call.ledger, call.payload.get("model")
    served = ledger.served and not (call.client_left or ledger.truncated)
    row = UsageRow(
        request_id=call.request_id,
        at=call.at,
        route=call.route,
        key_id=key.id if key is not None else None,
        key_name=key.name if key is not None else None,
        requested_model=requested[:200] if isinstance(requested, str) else "",
        combo=combo,
        strategy=call.strategy if combo is not None else None,
        stream=call.stream,
        status=499 if call.client_left else ledger.status,
        outcome="ok" if served else outcome_of(call),
        seed=call.seed,
        needs=_needs(call, call.needs) if call.needs is not None else {},
        duration_ms=duration_s * 1000,
    )
    if call.needs is not None:
        row.est_tokens = call.needs.est_tokens
    if call.traced is not None:
        row.trace_id, row.traced = call.traced.trace_id, call.traced
    elif TRACEPARENT in call.fields:
        row.trace_id = trace_id_of(call.header(TRACEPARENT) or "")
    _tell(row, call, ledger)
    return row


def _tell(row: UsageRow, call: Call, ledger: Ledger) -> None:
    """Put what the walk came to into *row*, as far as there is something to tell."""
    row.provider, row.model, row.account, row.usage = ledger.provider, ledger.model, ledger.account, ledger.usage
    row.cost_usd = cost_of(call)
    if ledger.attempts:
        row.attempts, row.trail = tuple(ledger.attempts), ledger.trail
        if not ledger.served or ledger.attempts[1:]:
            row.wasted = ledger.wasted
    if ledger.overhead_s is not None:
        row.overhead_ms = ledger.overhead_s * 1000
    if ledger.first_token_s is not None:
        row.first_token_ms = ledger.first_token_s * 1000
    if ledger.skipped:
        row.skipped = tuple([(skip.spec, str(skip.reason)) for skip in ledger.skipped])
    if ledger.adapted:
        row.adapted = ",".join(ledger.adapted)


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
    if ledger.provider is None or ledger.model is None or ledger.usage is None:
        return known
    cost = _cost(call, ledger.provider, ledger.model, ledger.usage)
    return cost if known is None else _added(known, cost)


def _added(known: float | None, more: float | None) -> float | None:
    return known if more is None else more + (known or 0.0)


def _cost(call: Call, provider: str, model: str, usage: Usage | None) -> float | None:
    found = call.snapshot.providers.get(provider)
    if found is None or usage is None:
        return None
    price = (found.models.get(model) or found.model(model)).price
    return None if price.input is None else cost_usd(usage, price.input, price.output, price.cached)


def _needs(call: Call, needs: Needs) -> dict[str, object]:
    """Return what the request needs and, where there is any, what else its routing went by."""
    found: dict[str, object] = {
        "tools": needs.tools,
        "vision": needs.vision,
        "json": needs.json,
        "audio": needs.audio,
        "est_tokens": needs.est_tokens,
        "max_output": needs.max_output,
    }
    if not (TELLING.isdisjoint(call.fields) and TELLING_FIELDS.isdisjoint(call.payload)):
        headers = _told(call)
        if headers:
            found["headers"] = headers
    if call.gist is not None:
        found["auto"] = asdict(call.gist)
    return found


def _told(call: Call) -> dict[str, str]:
    """Return what the client said of its routing."""
    told = ((name, call.header(name)) for name in ROUTING)
    headers = {name.decode(): value for name, value in told if value and PLAIN.fullmatch(value)}
    session = session_of(call)
    if session:  # whoever chose it may have put a name into it; that two are the same is all that matters
        headers[SESSION] = sha256(session.encode("utf-8", "replace")).hexdigest()[:16]
    return headers
