"""What one finished attempt says to whoever measures: who carried it, whether it went well, how long, how much.

The same value is taken from a live attempt, from a stored one, and from another instance.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from troyproxy.accounting.price import cost_usd
from troyproxy.accounting.records import AttemptRecord
from troyproxy.accounting.usage import Usage
from troyproxy.catalog.models import Price

SILENT: Final = frozenset({"request", "context", "cancelled", "saturated"})
"""Classes that say nothing of whoever was asked: the request, the client or we ourselves were at fault."""
OK: Final = "ok"


class Finished(msgspec.Struct, frozen=True, gc=False):
    """One attempt that has ended. *ok* None: it says nothing of luck."""

    provider: str
    model: str
    account: str
    """The account's name."""
    at: float
    """When it began, unix seconds."""
    ok: bool | None = None
    latency_ms: float | None = None
    """From its begin to its end; None where the answer was not read to its end."""
    tokens: int = 0
    usd: float = 0.0
    """What is not known counts 0, as for *tokens*."""
    remember: tuple[tuple[str, str, str, str], ...] = ()
    """Under which keys a good one is remembered, for the instances that share it."""

    @property
    def sane(self) -> bool:
        """Whether the numbers can be: another instance may send anything."""
        times = (self.at, self.usd, 0.0 if self.latency_ms is None else self.latency_ms)
        return all(math.isfinite(value) and value >= 0 for value in times) and self.tokens >= 0


def finished_of(
    record: AttemptRecord, price: Price, *, whole: bool = True, remember: tuple[tuple[str, str, str, str], ...] = ()
) -> Finished:
    """Return what *record* says, at the *price* of its model. A good one is remembered under the keys in *remember*.

    Not *whole*: the client left before the answer's end, so luck and speed are open.
    """
    outcome, usage = record.outcome, record.usage
    ok = None if outcome in SILENT or not whole else outcome == OK
    return Finished(
        provider=record.provider,
        model=record.model,
        account=record.account,
        at=record.started_at,
        ok=ok,
        latency_ms=record.duration_ms if ok else None,
        tokens=0 if usage is None else usage.input + usage.output,
        usd=0.0 if usage is None or price.input is None else _cost(usage, price),
        remember=remember if ok else (),
    )


def _cost(usage: Usage, price: Price) -> float:
    return cost_usd(usage, price.input, price.output, price.cached) or 0.0
