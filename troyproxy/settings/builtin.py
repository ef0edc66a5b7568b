"""The built-in providers, read from the catalogue's data file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final

from troyproxy.catalog import naming
from troyproxy.catalog.models import Model
from troyproxy.catalog.overlay import overlay
from troyproxy.catalog.providers import BEARER, Accepts, Auth, EffortSpelling, Provider
from troyproxy.settings import leaves
from troyproxy.settings.document import NOTHING_SAID, AcceptsEntry, ModelEntry
from troyproxy.settings.own_data import decoded, shaped
from troyproxy.settings.provider_shapes import ACCEPTS, AUTH, MODEL, TEXT
from troyproxy.settings.shapes import leaf, listing, mapping, record

_SELF: Final = "self"


@dataclass(frozen=True, slots=True, kw_only=True)
class Builtin:
    """One built-in provider as the data file has it."""

    base_url: str
    auth: Auth = BEARER
    aliases: tuple[str, ...] = ()
    key_env: tuple[str, ...] = ()
    default_model: str | None = None
    accepts: AcceptsEntry = NOTHING_SAID
    models_dev: str = _SELF
    patterns: Mapping[str, ModelEntry] = field(default_factory=lambda: MappingProxyType({}))

    def provider(self, name: str) -> Provider:
        """Return it as a provider without models and accounts."""
        accepts = Accepts(self.accepts.stream_options is not False, self.accepts.effort or EffortSpelling.FIELD)
        return Provider(
            id=name,
            base_url=self.base_url,
            aliases=self.aliases,
            auth=self.auth,
            key_env=self.key_env,
            default_model=self.default_model,
            accepts=accepts,
        )

    def refine(self, model: Model) -> Model:
        """Return *model* with what the patterns say of its family; a later pattern lies over an earlier one."""
        for pattern, entry in self.patterns.items():
            if fnmatchcase(model.id.lower(), pattern):
                model = overlay(entry.model(model.id), model)
        return model

    def catalogue_id(self, name: str) -> str | None:
        """Return the provider's id in the model catalogue, None when it has none."""
        return name if self.models_dev == _SELF else self.models_dev or None


_BUILTIN: Final = record(
    {
        "base_url": leaves.BASE_URL,
        "auth": AUTH,
        "aliases": listing(leaves.named(naming.provider_id)),
        "key_env": listing(TEXT),
        "default_model": TEXT,
        "accepts": ACCEPTS,
        "models_dev": leaf(str, "a text", {"type": "string"}),
        "patterns": mapping(MODEL),
    },
    Builtin,
    ["base_url"],
)
_BUILTINS: Final = mapping(_BUILTIN, naming.provider_id)


def parse_builtins(raw: object, source: str = "providers.yaml") -> Mapping[str, Builtin]:
    """Return the built-in providers of the decoded data file. Raises ConfigError, which would be our own fault."""
    return shaped(_BUILTINS, raw, source)


def load_builtins() -> Mapping[str, Builtin]:
    """Return the built-in providers by id, in the order of the data file."""
    raw: dict[str, dict[str, object]] = decoded("providers.yaml")
    return parse_builtins({k: {n: "" if v is None else v for n, v in e.items()} for k, e in raw.items()})
