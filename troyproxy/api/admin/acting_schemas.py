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
    "x-troy-wants-tools": "`1`: `default` takes only models that take tools.",
    "x-troy-mode": "`auto`: a pack, a variant, or an alias such as `fast`.",
    "x-troy-budget-usd": "`auto`: what this request may cost.",
    "x-troy-budget-policy": "`auto`: `cheapest` or `strict`.",
    "x-troy-task": "`auto`: what the request is about, instead of a guess.",
    "x-troy-session": "The conversation, for what is remembered of it.",
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
FACTORS: Final = {"type": "object", "additionalProperties": NUMBER}
DECISION: Final = titled(
    "AutoDecision",
    {
        "type": "object",
        "description": "What the auto engine decided for one combo: weights, factors, scores, memory, exclusions.",
        "properties": {
            "combo": TEXT,
            "task": TEXT,
            "specificity": NUMBER,
            "weights": FACTORS,
            "incident": FLAG,
            "known": FLAG,
            "explored": FLAG,
            "candidates": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["combo", "task", "specificity", "weights", "incident", "known", "explored", "candidates"],
    },
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
        auto=listing(DECISION),
        refused=nullable({"type": "object", "description": "The error that the client would get: `status`, `error`."}),
        seed=TEXT,
    ),
)
LOCKS: Final = titled("Locks", some({name: nullable(TEXT) for name in ("provider", "account", "model")}))
CLEARED: Final = titled("Cleared", exactly(cooldowns=COUNT, circuits=COUNT, everywhere=FLAG))
RELOADED: Final = titled("Reloaded", exactly(revision=COUNT, warnings=listing(TEXT)))
