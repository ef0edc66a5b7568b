"""Providers and connections as they may be written through the API: the shapes of the config file, but stricter.

What refers to the machine of the gateway (``env:NAME``, ``app:``) is for the file only. A provider is stored in the
clear, so credentials may stand in a connection's ``api_key`` and nowhere else. No I/O.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from troyproxy.catalog.secret import Secret
from troyproxy.settings import leaves
from troyproxy.settings.document import AccountEntry, Credential, ProviderEntry
from troyproxy.settings.provider_shapes import ACCOUNT_FIELDS, PROVIDER_FIELDS
from troyproxy.settings.report import Report, Wrong
from troyproxy.settings.shapes import Shape, leaf, mapping, record

LONGEST_KEY: Final = 8192
"""Characters of an upstream key; signed tokens have thousands."""
LONGEST_VALUE: Final = 4096
_HINT: Final = "give it as api_key of a connection"
_FOR_THE_FILE: Final[Mapping[str, str]] = {
    "app": "an app in this process is for the config file only",
    "accounts": "accounts are written as connections: at /api/connections, or in the field connections",
}
_CREDENTIAL_NAME: Final = re.compile(
    r"(?i:authoriz|credential|password|secret|token|cookie|api-?_?key|(?:^|[._-])(?:auth|key|sig|signature)(?:$|[._-]))"
)
_CREDENTIAL_VALUE: Final = re.compile(r"(?i:(?:bearer|basic|token)\s)|sk-[\w-]{8}")


def _no_credential(rule: str, name: str) -> str:
    if _CREDENTIAL_NAME.search(name):
        raise ValueError(f"{rule} of this name carries a credential; {_HINT}")
    return name


def _fixed_header(name: str) -> str:
    return _no_credential("a header", leaves.header_name(name))


def _fixed_parameter(name: str) -> str:
    return _no_credential("a parameter", leaves.printable(name))


def _fixed_value(value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError
    text = leaves.header_value(value)
    if text.startswith(leaves.ENV):
        raise Wrong("", "env: references are for the config file only")
    if len(text) > LONGEST_VALUE:
        raise Wrong("", f"it has more than {LONGEST_VALUE} characters")
    if _CREDENTIAL_VALUE.match(text):
        raise Wrong("", f"it looks like a credential; {_HINT}")
    return text


def _api_key(value: object) -> Credential:
    if not isinstance(value, str):
        raise TypeError
    if value.startswith(leaves.ENV):
        raise Wrong("", "env: references are for the config file only")
    if not (value.isascii() and value.isprintable()) or value != value.strip():
        raise Wrong("", "it is no printable ASCII text")
    if not 1 <= len(value) <= LONGEST_KEY:
        raise Wrong("", f"it has not 1 to {LONGEST_KEY} characters")
    return Credential(literal=Secret(value))


_VALUE: Final = leaf(_fixed_value, "printable ASCII", {"type": ["string", "number"]}, hidden=True)
STORED_PROVIDER_FIELDS: Final[Mapping[str, Shape[object]]] = {
    **{name: shape for name, shape in PROVIDER_FIELDS.items() if name not in _FOR_THE_FILE},
    "headers": mapping(_VALUE, _fixed_header),
    "query": mapping(_VALUE, _fixed_parameter),
    "proxy": leaves.OPEN_PROXY,
}
STORED_PROVIDER: Final = record(STORED_PROVIDER_FIELDS, ProviderEntry)
CONNECTION_FIELDS: Final[Mapping[str, Shape[object]]] = {
    **ACCOUNT_FIELDS,
    "api_key": leaf(
        _api_key,
        f"1 to {LONGEST_KEY} characters of printable ASCII",
        {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "writeOnly": True},
        hidden=True,
    ),
}
CONNECTION: Final = record(CONNECTION_FIELDS, AccountEntry, ["name"])


def read_provider(raw: Mapping[str, object], report: Report) -> ProviderEntry | None:
    """Return the provider that *raw* describes, None when something is wrong with it; *report* says what."""
    for name, why in _FOR_THE_FILE.items():
        if raw.get(name) is not None:
            report.wrong(name, why)
    return STORED_PROVIDER.read({key: value for key, value in raw.items() if key not in _FOR_THE_FILE}, "", report)


def read_connection(raw: object, place: str, report: Report) -> AccountEntry | None:
    """Return the connection that *raw* at *place* describes, None when something is wrong with it."""
    return CONNECTION.read(raw, place, report)
