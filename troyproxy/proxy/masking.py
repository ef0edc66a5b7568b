"""Takes secrets out of an upstream's own words before a client reads them. Nothing else of the text changes.

Upstreams quote what they were sent: the whole key, its first or last characters around stars, or their own URL with a
key in the query.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from troyproxy.catalog.providers import Provider
from troyproxy.catalog.snapshot import Snapshot

MASK: Final = b"***"
MIN_SECRET: Final = 6
HEAD: Final = 8
TAIL: Final = 4


def secrets_of(snapshot: Snapshot) -> list[str]:
    """Return every configured upstream secret, the longest first."""
    accounts = (account for provider in snapshot.providers.values() for account in provider.accounts)
    found = {account.api_key.reveal() for account in accounts if account.api_key is not None}
    return sorted((secret for secret in found if len(secret) >= MIN_SECRET), key=len, reverse=True)


def masked(text: bytes, snapshot: Snapshot, provider: Provider) -> bytes:
    """Return *text* without a configured secret, its visible head or tail, or the provider's URLs."""
    for secret in secrets_of(snapshot):
        text = _pattern(secret).sub(MASK, text)
    for pattern in _urls(provider):
        text = pattern.sub(b"https://" + MASK, text)
    return text


def _pattern(secret: str) -> re.Pattern[bytes]:
    """The secret; its head with what is glued to it; or stars with its tail glued to them."""
    forms = [re.escape(secret)]
    if len(secret) >= 2 * HEAD:
        forms.append(re.escape(secret[:HEAD]) + r"[^\s\"'<>,;)\]}\\]*")
        forms.append(r"[*.•…xX]{2,}" + re.escape(secret[-TAIL:]))
    return re.compile("|".join(forms).encode())


def _urls(provider: Provider) -> Iterable[re.Pattern[bytes]]:
    host = urlsplit(provider.base_url).netloc
    if host:
        yield re.compile(rb"https?:(?:\\?/){2}" + re.escape(host.encode()) + rb"[^\s\"'<>\\]*")
