"""What requests and answers about providers and connections look like, in JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from troyproxy.api.admin.schemas import (
    ANY,
    COUNT,
    FLAG,
    MOMENT,
    NUMBER,
    TEXT,
    WHOLE,
    Schema,
    body_of,
    exactly,
    listing,
    mapping,
    nullable,
    one_of,
    some,
    titled,
    with_warnings,
)
from troyproxy.catalog.providers import Origin
from troyproxy.proxy import connection_book, provider_entries
from troyproxy.proxy.provider_draft import MAX_CONNECTIONS
from troyproxy.settings.provider_shapes import AUTH, QUOTA
from troyproxy.settings.stored_shapes import CONNECTION, STORED_PROVIDER

TAIL: Final[Mapping[str, Schema]] = {
    "origin": one_of(*(origin.value for origin in Origin)),
    "read_only": FLAG,
    "version": COUNT,
    "created_at": MOMENT,
}


def _properties(schema: Schema) -> dict[str, Schema]:
    found = schema["properties"]
    if not isinstance(found, Mapping):
        raise TypeError("the schema has no properties")
    return dict(found)


# --- connections ----------------------------------------------------------------------------------------------------

_SENT: Final = _properties(body_of(CONNECTION, ignored=connection_book.READ_ONLY, partial=True))
CONNECTION_NEW: Final = titled(
    "NewConnection", some({**_SENT, "id": nullable(TEXT), "provider": TEXT, "name": TEXT}, ["provider", "name"])
)
CONNECTION_CHANGE: Final = titled(
    "ConnectionChange", some({**_SENT, "id": nullable(TEXT), "provider": nullable(TEXT), "name": nullable(TEXT)})
)
_CONNECTION: Final = exactly(
    id=TEXT,
    provider=TEXT,
    name=TEXT,
    models=listing(TEXT),
    default_model=nullable(TEXT),
    tier=nullable(TEXT),
    priority=WHOLE,
    quota=nullable(QUOTA.schema),
    quota_reset_interval_s=nullable(NUMBER),
    max_inflight=nullable(WHOLE),
    token_expires_at=nullable(MOMENT),
    active=FLAG,
    has_api_key=FLAG,
    **TAIL,
)
CONNECTION_LISTED: Final = titled("ListedConnection", _CONNECTION)
CONNECTION_ANSWER: Final = titled("Connection", with_warnings(_CONNECTION))

# --- providers ------------------------------------------------------------------------------------------------------

_WRITTEN: Final = _properties(body_of(STORED_PROVIDER, partial=True))
_READ_ONLY: Final = _properties(body_of(STORED_PROVIDER, ignored=provider_entries.READ_ONLY))
_WITH_IT: Final[Schema] = {
    "anyOf": [
        {"type": "array", "maxItems": MAX_CONNECTIONS, "items": some({**_SENT, "name": TEXT}, ["name"])},
        {"type": "null"},
    ],
    "description": "Connections that come with it: one of a known name is changed, any other is new.",
}
_PROVIDER_SENT: Final = {**_READ_ONLY, **_WRITTEN, "connections": _WITH_IT}
PROVIDER_NEW: Final = titled("NewProvider", some({**_PROVIDER_SENT, "id": TEXT}, ["id"]))
PROVIDER_CHANGE: Final = titled("ProviderChange", some({**_PROVIDER_SENT, "id": nullable(TEXT)}))
_EFFECTIVE: Final = exactly(
    base_url=TEXT,
    app=nullable(TEXT),
    aliases=listing(TEXT),
    auth=AUTH.schema,
    headers=mapping(TEXT),
    query=mapping(TEXT),
    default_model=nullable(TEXT),
    accepts=exactly(stream_options=FLAG, effort=TEXT),
    ca_file=nullable(TEXT),
    proxy=nullable(TEXT),
    timeouts=mapping(nullable(NUMBER)),
    max_inflight=nullable(WHOLE),
    leak=ANY,
)
_TOLD: Final[Mapping[str, Schema]] = {
    "id": TEXT,
    "effective": titled("EffectiveProvider", _EFFECTIVE),
    "connected": FLAG,
    "account_count": COUNT,
    "connection_count": COUNT,
    "model_count": COUNT,
    **TAIL,
}
PROVIDER_LISTED: Final = titled("ListedProvider", some({**_WRITTEN, **_TOLD}, [*_TOLD]))
PROVIDER_ANSWER: Final = titled(
    "Provider", some({**_WRITTEN, **_TOLD, "warnings": listing(TEXT)}, [*_TOLD, "warnings"])
)
