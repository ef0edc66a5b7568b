"""Every setting as text, with where it came from and without a secret: for `config show` and ``/api/settings``."""

from __future__ import annotations

import re
from typing import Final

from troyproxy.catalog.secret import Secret
from troyproxy.settings.load import Configuration
from troyproxy.settings.parsers import PARSERS

MASK: Final = "***"
URLS: Final = frozenset({"database_url", "redis_url", "model_catalog_url"})
"""Settings that are URLs, shown without their passwords and the values of their queries."""


def rows(configuration: Configuration) -> list[tuple[str, str, str]]:
    """Return (setting, value as text, origin) in the order of the documentation. An unset value is empty."""
    settings, provenance = configuration.settings, configuration.provenance
    values = {name: getattr(settings, name) for name in PARSERS} | {"config": configuration.path}
    return [(name, shown_value(name, value), provenance[name]) for name, value in values.items()]


def shown_value(name: str, value: object) -> str:
    """Return the value of the setting *name* as it may be shown."""
    if isinstance(value, Secret):
        return MASK
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return ",".join(str(v) for v in value)
    text = "" if value is None else str(value)
    return without_password(text) if name in URLS else text


def without_password(url: str) -> str:
    """Return *url* with its password, and every value of its query, masked."""
    masked = re.sub(r"(//[^/@:]*):.*@", rf"\1:{MASK}@", url)
    return re.sub(r"([?&][^=&]*)=[^&]*", rf"\1={MASK}", masked)
