"""Keys that clients present. Only a SHA-256 of the secret is ever held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from troyproxy.catalog.providers import Origin


class KeyState(StrEnum):
    """Whether a key opens anything: revoked is for good, expired until its end is moved."""

    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Key:
    """One client key. `digest` is the SHA-256 of the secret's bytes; `models` are globs, empty = everything.

    Moments are unix seconds.
    """

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
    version: int = 0
    """Counts the writes of one that lives in the database; 0 elsewhere."""
    previous_digest: bytes | None = field(default=None, repr=False)
    """Of the secret before the last rotation, which works until `previous_until`."""
    previous_until: float | None = None

    def state(self, now: float) -> KeyState:
        """Return what the key is at *now* (unix seconds)."""
        if self.revoked_at is not None:
            return KeyState.REVOKED
        over = self.expires_at is not None and self.expires_at <= now
        return KeyState.EXPIRED if over else KeyState.VALID

    def valid(self, now: float) -> bool:
        """Whether the key opens anything at *now* (unix seconds)."""
        return self.state(now) is KeyState.VALID

    def digests(self, now: float) -> tuple[bytes, ...]:
        """Return what a secret's digest may be at *now* (unix seconds): one, or two while an old secret still works."""
        if self.previous_digest is None or self.previous_until is None or self.previous_until <= now:
            return (self.digest,)
        return (self.digest, self.previous_digest)
