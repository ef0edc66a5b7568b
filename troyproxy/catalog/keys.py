"""Keys that clients present. Only a SHA-256 of the secret is ever held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from troyproxy.catalog.providers import Origin


@dataclass(frozen=True, slots=True)
class Key:
    """One client key. `digest` is the SHA-256 of the secret's bytes; `models` are globs, empty = everything."""

    id: str
    name: str
    digest: bytes = field(repr=False)
    models: tuple[str, ...] = ()
    provider: str | None = None
    limits: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    leak: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    expires_at: float | None = None
    revoked_at: float | None = None
    created_at: float = 0.0
    origin: Origin = Origin.DATABASE

    def valid(self, now: float) -> bool:
        """Whether the key opens anything at *now* (unix seconds)."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)
