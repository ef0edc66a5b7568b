"""What requests and answers about client keys look like, in JSON Schema."""

from __future__ import annotations

from typing import Final

from troyproxy.api.admin.schemas import (
    ANY,
    COUNT,
    FLAG,
    MOMENT,
    NUMBER,
    TEXT,
    Schema,
    body_of,
    exactly,
    listing,
    mapping,
    nullable,
    one_of,
    titled,
)
from troyproxy.catalog.keys import KeyState
from troyproxy.catalog.providers import Origin
from troyproxy.proxy.key_words import READ_ONLY, ROTATION, SETTINGS

_FIELDS: Final[dict[str, Schema]] = {
    "id": TEXT,
    "name": TEXT,
    "models": listing(TEXT),
    "provider": nullable(TEXT),
    "limits": mapping(NUMBER),
    "leak": mapping(ANY),
    "expires_at": nullable(MOMENT),
    "state": one_of(*(state.value for state in KeyState)),
    "revoked_at": nullable(MOMENT),
    "previous_until": nullable({**MOMENT, "description": "Until when the secret before the last rotation works."}),
    "origin": one_of(*(origin.value for origin in Origin)),
    "read_only": FLAG,
    "version": COUNT,
    "created_at": MOMENT,
}
_SECRET: Final[Schema] = {"type": "string", "description": "The secret, here and never again."}
KEY_LISTED: Final = titled("ListedKey", exactly(**_FIELDS))
KEY: Final = titled("Key", exactly(**_FIELDS, warnings=listing(TEXT)))
KEY_WITH_SECRET: Final = titled("KeyWithSecret", exactly(**_FIELDS, key=_SECRET, warnings=listing(TEXT)))
KEY_NEW: Final = titled("NewKey", body_of(SETTINGS, ignored=READ_ONLY))
KEY_CHANGE: Final = titled("KeyChange", body_of(SETTINGS, ignored=(*READ_ONLY, "id"), partial=True))
ROTATION_IN: Final = titled("Rotation", body_of(ROTATION))
GONE: Final = titled("RemovedKey", exactly(id=TEXT, deleted=FLAG))
