"""What ``GET /api/status`` answers, as a schema."""

from __future__ import annotations

from typing import Final

from troyproxy.api.admin.schemas import (
    COUNT,
    FLAG,
    MOMENT,
    NUMBER,
    TEXT,
    exactly,
    listing,
    mapping,
    nullable,
    one_of,
    some,
    titled,
)
from troyproxy.resilience.breaker import CircuitState
from troyproxy.resilience.classes import ErrorClass

CIRCUIT: Final = exactly(provider=TEXT, model=TEXT, state=one_of(*CircuitState), until=nullable(MOMENT))
COOLDOWN: Final = exactly(
    **{"class": one_of(*ErrorClass)},
    provider=TEXT,
    account=TEXT,
    model=TEXT,
    until=MOMENT,
    soft=FLAG,
)
STATUS: Final = titled(
    "Status",
    exactly(
        worker=exactly(name=TEXT, pid=COUNT),
        circuits=listing(CIRCUIT),
        cooldowns=listing(COOLDOWN),
        accounts=listing(exactly(provider=TEXT, account=TEXT, inflight=COUNT)),
        queues=mapping(COUNT),
        shared_state=nullable(exactly(up=FLAG, failures=COUNT)),
        key_limits=nullable(some({"shared": nullable(FLAG), "decided_alone": COUNT}, required=["shared"])),
        catalog=nullable(
            exactly(fetched_at=nullable(MOMENT), age_s=nullable(NUMBER), models=COUNT, error=nullable(TEXT))
        ),
        config=exactly(revision=COUNT, loaded_at=MOMENT, error=nullable(TEXT), warnings=listing(TEXT)),
    ),
)
