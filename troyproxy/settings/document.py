"""The config file as typed, frozen values: what was written, before built-ins, environment and database are added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from troyproxy.catalog.combos import Combo
from troyproxy.catalog.models import Capabilities, Limits, Model, Price, ToolCalls
from troyproxy.catalog.providers import Auth, EffortSpelling, Timeouts
from troyproxy.catalog.secret import Secret

NO_FITNESS: Final[Mapping[str, float]] = MappingProxyType({})
NO_PRICE: Final = Price()
NO_TIMEOUTS: Final = Timeouts()


@dataclass(frozen=True, slots=True)
class Credential:
    """A secret in the file: the name of an environment variable, or the text itself."""

    env: str | None = None
    literal: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model as written; None = not written. Limits in tokens."""

    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    json: bool | None = None
    audio: bool | None = None
    context: int | None = None
    output: int | None = None
    price: Price = NO_PRICE
    tool_calls: ToolCalls | None = None
    efforts: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    tier: str | None = None
    fitness: Mapping[str, float] = field(default_factory=lambda: NO_FITNESS)
    no_sampling_with_effort: bool = False
    no_effort: bool = False

    def model(self, name: str) -> Model:
        """Return it as a model called *name*."""
        return Model(
            id=name,
            capabilities=Capabilities(self.tools, self.vision, self.reasoning, self.json, self.audio),
            limits=Limits(self.context, self.output),
            price=self.price,
            tool_calls=self.tool_calls,
            efforts=self.efforts,
            aliases=self.aliases,
            tier=self.tier,
            fitness=self.fitness,
            no_sampling_with_effort=self.no_sampling_with_effort,
            no_effort=self.no_effort,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountEntry:
    """An account as written. `token_expires_at` is unix seconds."""

    name: str
    api_key: Credential | None = None
    models: tuple[str, ...] = ()
    default_model: str | None = None
    tier: str | None = None
    priority: int = 0
    quota: Mapping[str, object] | None = None
    quota_reset_interval_s: float | None = None
    max_inflight: int | None = None
    token_expires_at: float | None = None
    active: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptsEntry:
    """What a provider takes or rejects, as written; None = as built in."""

    stream_options: bool | None = None
    effort: EffortSpelling | None = None


NOTHING_SAID: Final = AcceptsEntry()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEntry:
    """A provider as written; None or empty = as built in."""

    base_url: str | None = None
    app: str | None = None
    aliases: tuple[str, ...] = ()
    auth: Auth | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    query: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    ca_file: str | None = None
    proxy: str | None = field(default=None, repr=False)
    timeouts: Timeouts = NO_TIMEOUTS
    max_inflight: int | None = None
    leak: str | Mapping[str, object] | None = None
    accepts: AcceptsEntry = NOTHING_SAID
    default_model: str | None = None
    models: Mapping[str, ModelEntry] = field(default_factory=lambda: MappingProxyType({}))
    accounts: tuple[AccountEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEntry:
    """A client key as written. `expires_at` is unix seconds."""

    name: str
    key: Credential
    models: tuple[str, ...] = ()
    provider: str | None = None
    limits: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    leak: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    expires_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The whole file. `settings` holds parsed values of `Settings` fields; `leak` the finer options."""

    providers: Mapping[str, ProviderEntry] = field(default_factory=lambda: MappingProxyType({}))
    combos: Mapping[str, Combo] = field(default_factory=lambda: MappingProxyType({}))
    settings: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    leak: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    effort: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Thinking tokens per level, where they differ from the usual ones."""
    models: Mapping[str, ModelEntry] = field(default_factory=lambda: MappingProxyType({}))
    keys: tuple[KeyEntry, ...] = ()


EMPTY: Final = Document()
