"""Providers and their accounts, as data. Oddities of a vendor are fields here or a codec, never code in the walk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from troyproxy.catalog.models import UNKNOWN, Model
from troyproxy.catalog.secret import Secret


class Origin(StrEnum):
    """Where an entry comes from; file and environment entries are read-only in the API."""

    BUILTIN = "builtin"
    FILE = "file"
    ENVIRONMENT = "environment"
    DATABASE = "database"
    CALLER = "caller"


@dataclass(frozen=True, slots=True)
class Auth:
    """How a credential is sent: header name and what stands before the secret. No header: no credential."""

    header: str | None = "authorization"
    prefix: str = "Bearer "


BEARER = Auth()
X_API_KEY = Auth("x-api-key", "")
NO_AUTH = Auth(None, "")


class EffortSpelling(StrEnum):
    """The one spelling of a reasoning effort that a provider takes."""

    FIELD = "reasoning_effort"
    OBJECT = "reasoning"
    BUDGET = "thinking"
    """A thinking budget in tokens."""
    SWITCH = "thinking.type"
    """Thinking on or off, nothing between."""


@dataclass(frozen=True, slots=True)
class Accepts:
    """Request features that a provider takes or rejects."""

    stream_options: bool = True
    effort: EffortSpelling = EffortSpelling.FIELD


@dataclass(frozen=True, slots=True)
class Timeouts:
    """A provider's own deadlines in seconds; None = the setting."""

    connect_s: float | None = None
    first_byte_s: float | None = None
    first_output_s: float | None = None
    idle_s: float | None = None
    total_s: float | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """One credential of one provider. `id` is unique over all providers: ``<provider>#<name>``."""

    id: str
    provider: str
    name: str
    api_key: Secret | None = None
    models: tuple[str, ...] = ()
    """Globs over model ids; empty = every model of the provider."""
    default_model: str | None = None
    tier: str | None = None
    priority: int = 0
    quota: Mapping[str, object] | None = None
    quota_reset_interval_s: float | None = None
    max_inflight: int | None = None
    token_expires_at: float | None = None
    active: bool = True
    created_at: float = 0.0
    origin: Origin = Origin.FILE
    version: int = 0
    """Counts the writes of one that lives in the database; 0 elsewhere."""

    def usable(self, now: float) -> bool:
        """Whether the account may be used at *now* (unix seconds)."""
        return self.active and (self.token_expires_at is None or self.token_expires_at > now)


@dataclass(frozen=True, slots=True)
class StoredProvider:
    """A provider that lives in the database: what was written, as in the config file, without its accounts."""

    id: str
    config: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    version: int = 0
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Provider:
    """One upstream. It is *connected* when it has an account (or needs none) and is configured."""

    id: str
    base_url: str = ""
    aliases: tuple[str, ...] = ()
    auth: Auth = BEARER
    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    key_env: tuple[str, ...] = ()
    default_model: str | None = None
    accepts: Accepts = Accepts()
    models: Mapping[str, Model] = field(default_factory=lambda: MappingProxyType({}))
    """The provider's own list by canonical id; empty = it has no list and anything is forwarded."""
    declared: bool = False
    """The list was declared in the file (a custom provider's own), not taken from the catalogue."""
    accounts: tuple[Account, ...] = ()
    app: str | None = None
    """An ASGI app in this process as upstream: ``package:attribute``, ``inner`` or ``demo``."""
    ca_file: str | None = None
    proxy: str | None = None
    timeouts: Timeouts = Timeouts()
    max_inflight: int | None = None
    leak: str | Mapping[str, object] | None = None
    """The leak mode, or mode and options, of its answers."""
    origin: Origin = Origin.BUILTIN

    @property
    def keyless(self) -> bool:
        """No credential is sent; one synthetic account stands for the provider."""
        return self.auth.header is None

    def canonical_model(self, name: str) -> str | None:
        """Return the listed id that *name* spells (an id or an alias of one), or None when it is not listed."""
        if name in self.models:
            return name
        return next((m.id for m in self.models.values() if name in m.aliases), None)

    def model(self, name: str) -> Model:
        """Return what is known of the model *name* (id or alias); unknown models know nothing."""
        listed = self.canonical_model(name)
        return self.models[listed] if listed is not None else UNKNOWN

    def first_model(self) -> str | None:
        """The model that the default resolvers use."""
        return self.default_model or next(iter(self.models), None)
