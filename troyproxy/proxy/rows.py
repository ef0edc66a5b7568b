"""From a finished call to the row that is kept of it."""

from __future__ import annotations

from dataclasses import asdict

from troyproxy.accounting.price import cost_usd
from troyproxy.accounting.records import UsageRow
from troyproxy.proxy.call import Call


def row_of(call: Call, *, duration_s: float) -> UsageRow:
    """Return what is kept: no prompt, no completion, no secret."""
    ledger, resolution = call.ledger, call.resolution
    combo = resolution.combo if resolution is not None else None
    requested = call.payload.get("model")
    return UsageRow(
        request_id=call.request_id,
        at=call.at,
        route=call.route,
        key_id=call.key.id if call.key is not None else None,
        key_name=call.key.name if call.key is not None else None,
        requested_model=requested[:200] if isinstance(requested, str) else "",
        combo=combo.name if combo is not None else None,
        strategy=combo.strategy if combo is not None else None,
        stream=call.stream,
        status=499 if call.client_left else ledger.status,
        outcome=outcome_of(call),
        provider=ledger.provider,
        model=ledger.model,
        account=ledger.account,
        attempts=tuple(ledger.attempts),
        skipped=tuple((skip.spec, str(skip.reason)) for skip in ledger.skipped),
        seed=call.seed,
        needs=asdict(call.needs) if call.needs is not None else {},
        est_tokens=call.needs.est_tokens if call.needs is not None else 0,
        usage=ledger.usage,
        wasted=ledger.wasted,
        cost_usd=_cost(call),
        duration_ms=duration_s * 1000,
        overhead_ms=_ms(ledger.overhead_s),
        first_token_ms=_ms(ledger.first_token_s),
        trail=ledger.trail,
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
    if ledger.refused or not ledger.attempts:
        return "client_error" if ledger.status < 500 else "refused"
    return "client_error" if ledger.status in {400, 404, 413, 422} else "upstream_error"


def _cost(call: Call) -> float | None:
    ledger = call.ledger
    provider = call.snapshot.providers.get(ledger.provider or "")
    if provider is None or ledger.usage is None or ledger.model is None:
        return None
    price = provider.model(ledger.model).price
    return cost_usd(ledger.usage, price.input, price.output, price.cached)


def _ms(seconds: float | None) -> float | None:
    return seconds * 1000 if seconds is not None else None
