"""What the actions take and answer, as schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from troyproxy.api.admin.schemas import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    Schema,
    exactly,
    listing,
    mapping,
    nullable,
    one_of,
    some,
    titled,
)

CHAT: Final[Schema] = titled(
    "ChatRequest",
    {
        "type": "object",
        "description": "A chat request as a client would send it; other members are read as a client's would be.",
        "properties": {
            "model": {"type": "string", "minLength": 1},
            "messages": {"type": "array", "items": {"type": "object"}, "minItems": 1},
        },
        "required": ["model", "messages"],
    },
)
ROUTING: Final[Mapping[str, str]] = {
    "x-troy-provider": "The provider that is preferred where the name leaves a choice.",
    "x-troy-wants-tools": "`1`: only members that take tools.",
}
MEMBER: Final = exactly(
    member=TEXT,
    account=nullable(TEXT),
    weight=NUMBER,
    verdict=one_of("eligible", "skipped"),
    reason=nullable(TEXT),
    place=nullable(COUNT),
    context_length=nullable(COUNT),
    max_output_tokens=nullable(COUNT),
    room_needed=nullable(COUNT),
    capabilities=mapping(nullable(FLAG)),
    adapted=listing(TEXT),
)
NAME: Final = exactly(
    asked=TEXT,
    kind=TEXT,
    canonical=TEXT,
    combo=nullable(TEXT),
    suffix_effort=nullable(TEXT),
    how=TEXT,
)
EXPLANATION: Final = titled(
    "Explanation",
    exactly(
        model=NAME,
        strategy=TEXT,
        effort=nullable(
            exactly(level=nullable(TEXT), source=TEXT, budget=FLAG, overruled=nullable(TEXT)),
        ),
        needs=nullable(
            exactly(
                tools=FLAG,
                vision=FLAG,
                json=FLAG,
                audio=FLAG,
                est_tokens=COUNT,
                max_output=nullable(COUNT),
            )
        ),
        members=listing(MEMBER),
        order=listing(TEXT),
        refused=nullable({"type": "object", "description": "The error that the client would get: `status`, `error`."}),
        seed=TEXT,
    ),
)
LOCKS: Final = titled("Locks", some({name: nullable(TEXT) for name in ("provider", "account", "model")}))
CLEARED: Final = titled("Cleared", exactly(cooldowns=COUNT, circuits=COUNT, everywhere=FLAG))
RELOADED: Final = titled("Reloaded", exactly(revision=COUNT, warnings=listing(TEXT)))
