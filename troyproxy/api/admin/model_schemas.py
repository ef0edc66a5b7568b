"""What requests and answers about models look like, in JSON Schema."""

from __future__ import annotations

from typing import Final

from troyproxy.api.admin.schemas import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    Schema,
    body_of,
    exactly,
    listing,
    nullable,
    one_of,
    properties_of,
    titled,
)
from troyproxy.auto.tiers import EconomicTier
from troyproxy.catalog.models import EFFORTS, ToolCalls
from troyproxy.catalog.providers import Origin
from troyproxy.proxy.model_book import CATALOGUE
from troyproxy.proxy.model_words import FLAGS, READ_ONLY
from troyproxy.settings.provider_shapes import MODEL

_FIELDS: Final[dict[str, Schema]] = {
    **dict.fromkeys(FLAGS, nullable(FLAG)),
    "context": nullable(COUNT),
    "output": nullable(COUNT),
    "price": exactly(input=nullable(NUMBER), output=nullable(NUMBER), cached=nullable(NUMBER)),
    "tool_calls": nullable(one_of(*(each.value for each in ToolCalls))),
    "efforts": listing(one_of(*EFFORTS)),
    "aliases": listing(TEXT),
    "tier": nullable(one_of(*EconomicTier)),
    "fitness": {"type": "object", "additionalProperties": NUMBER},
    "no_sampling_with_effort": FLAG,
    "no_effort": FLAG,
}
_TOLD: Final[dict[str, Schema]] = {
    "id": TEXT,
    "provider": TEXT,
    "model": TEXT,
    **_FIELDS,
    "effective": nullable(titled("EffectiveModel", exactly(**_FIELDS))),
    "overridden": FLAG,
    "origin": one_of(CATALOGUE, *(origin.value for origin in Origin)),
    "read_only": FLAG,
    "version": COUNT,
}
MODEL_LISTED: Final = titled("ListedModel", exactly(**_TOLD))
MODEL_ANSWER: Final = titled("Model", exactly(**_TOLD, warnings=listing(TEXT)))
_SENT: Final = body_of(MODEL, ignored=READ_ONLY, partial=True)
_PROPERTIES: Final = properties_of(_SENT)
MODEL_NEW: Final = titled("NewModel", {**_SENT, "properties": {**_PROPERTIES, "id": TEXT}, "required": ["id"]})
MODEL_CHANGE: Final = titled("ModelChange", {**_SENT, "properties": {**_PROPERTIES, "id": nullable(TEXT)}})
GONE: Final = titled("RemovedModel", exactly(id=TEXT, deleted=FLAG, warnings=listing(TEXT)))
