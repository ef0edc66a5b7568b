"""What ``GET /api/admin/ai/quota`` answers, as a schema. Members that are not required are absent when not known."""

from __future__ import annotations

from typing import Final

from troyproxy.accounting.quota_board import State
from troyproxy.api.admin.schemas import COUNT, FLAG, MOMENT, NUMBER, TEXT, exactly, listing, one_of, some, titled
from troyproxy.catalog.ceilings import Confidence
from troyproxy.resilience.breaker import CircuitState
from troyproxy.resilience.classes import ErrorClass
from troyproxy.settings.ceilings import NUMBERS, OWNERS

_DAY: Final = {"type": "string", "format": "date"}
_CEILING: Final = {
    "plan": TEXT,
    "models": TEXT,
    "shared": FLAG,
    "per": one_of(*OWNERS),
    "confidence": one_of(*Confidence),
    "verified_on": _DAY,
    "age_days": COUNT,
    "stale": FLAG,
    "source_url": TEXT,
}
CEILING: Final = titled("Ceiling", some({**_CEILING, **dict.fromkeys(NUMBERS, COUNT), "note": TEXT}, required=_CEILING))
_COUNTS: Final = {
    "lower_bound": {"const": True},
    "requests": COUNT,
    "rate_limited": COUNT,
    "embeddings": COUNT,
    "requests_with_tokens": COUNT,
}
USAGE: Final = titled("QuotaUsage", some({**_COUNTS, "tokens": COUNT}, required=_COUNTS))
_HEARD: Final = {"bucket": TEXT, "remaining_ratio": NUMBER, "at": MOMENT, "age_s": NUMBER, "current": FLAG}
SIGNAL: Final = titled(
    "RateLimitSignal", some({**_HEARD, "limit": NUMBER, "remaining": NUMBER, "reset_at": MOMENT}, required=_HEARD)
)
_OWN: Final = {"bucket": TEXT, "limit": NUMBER, "remaining_ratio": NUMBER}
OWN: Final = titled("OwnQuota", some({**_OWN, "reset_at": MOMENT}, required=_OWN))
LOCK: Final = titled(
    "QuotaCooldown",
    exactly(**{"class": one_of(*ErrorClass)}, account=TEXT, model=TEXT, until=MOMENT, soft=FLAG),
)
_CIRCUIT: Final = {"model": TEXT, "state": one_of(*CircuitState)}
CIRCUIT: Final = some({**_CIRCUIT, "until": MOMENT}, required=_CIRCUIT)
_ACCOUNT: Final = {
    "account": TEXT,
    "usage": USAGE,
    "signals": listing(SIGNAL),
    "quotas": listing(OWN),
    "cooldowns": listing(LOCK),
}
_PROVIDER: Final = {
    "provider": TEXT,
    "state": one_of(*State),
    "ceilings": listing(CEILING),
    "accounts": listing(titled("QuotaAccount", some(_ACCOUNT, required=["account"]))),
}
PROVIDER: Final = titled(
    "QuotaOfProvider",
    some({**_PROVIDER, "usage": USAGE, "cooldowns": listing(LOCK), "circuits": listing(CIRCUIT)}, required=_PROVIDER),
)
BOARD: Final = titled(
    "QuotaBoard",
    exactly(
        worker=exactly(name=TEXT, pid=COUNT),
        now=MOMENT,
        day=_DAY,
        day_ends_at=MOMENT,
        usage_known=FLAG,
        providers=listing(PROVIDER),
    ),
)
