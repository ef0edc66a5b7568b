"""One immutable picture of the configuration. A request keeps the snapshot it started with; a reload swaps it whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from troyproxy.catalog.combos import Combo
from troyproxy.catalog.keys import Key
from troyproxy.catalog.models import Model
from troyproxy.catalog.providers import Provider


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that routing needs, in memory. Built by `build`, never edited."""

    revision: int = 0
    loaded_at: float = 0.0
    providers: Mapping[str, Provider] = field(default_factory=lambda: MappingProxyType({}))
    """Configured providers by id, in file order (environment and database entries behind)."""
    combos: Mapping[str, Combo] = field(default_factory=lambda: MappingProxyType({}))
    """Combos by name."""
    combo_ids: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Combo id → name, where they differ."""
    keys: Mapping[bytes, Key] = field(default_factory=lambda: MappingProxyType({}))
    """File keys by digest; database keys are looked up by the authenticator."""
    provider_names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Provider id or alias → provider id."""
    catalog: Mapping[str, Mapping[str, Model]] = field(default_factory=lambda: MappingProxyType({}))
    """Catalogue models by provider id, configured or not."""
    file_models: Mapping[str, Model] = field(default_factory=lambda: MappingProxyType({}))
    """What the config file knows better of models than the catalogue, by spec as written there."""
    default_provider: str | None = None
    default_effort: str | None = None
    effort_budgets: Mapping[str, int] | None = None
    """Thinking tokens per level, every level but ``none``; None = the usual ones."""
    auto_models: str = "default"
    """``default`` or ``all``: the models of a provider that are in the pool of ``auto``."""
    leak: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """The options of the leak guard that hold where nobody says otherwise."""
    warnings: tuple[str, ...] = ()

    def provider(self, name: str) -> Provider | None:
        """Return the provider that *name* (an id or alias: exact, then a unique case-insensitive match) means."""
        found = self.provider_names.get(name)
        if found is None:
            matches = {pid for alias, pid in self.provider_names.items() if alias.lower() == name.lower()}
            found = matches.pop() if len(matches) == 1 else None
        return self.providers.get(found) if found is not None else None

    def combo(self, name: str) -> Combo | None:
        """Return the combo with this exact name or id."""
        return self.combos.get(name) or self.combos.get(self.combo_ids.get(name, ""))


def build(  # noqa: PLR0913 -- one argument per part of the picture, by keyword
    providers: Iterable[Provider],
    combos: Iterable[Combo] = (),
    keys: Iterable[Key] = (),
    *,
    revision: int = 0,
    loaded_at: float = 0.0,
    catalog: Mapping[str, Mapping[str, Model]] | None = None,
    file_models: Mapping[str, Model] | None = None,
    default_provider: str | None = None,
    default_effort: str | None = None,
    effort_budgets: Mapping[str, int] | None = None,
    auto_models: str = "default",
    leak: Mapping[str, object] | None = None,
    warnings: Iterable[str] = (),
) -> Snapshot:
    """Return a snapshot with its lookup tables. Order is kept; an id always beats another provider's alias."""
    by_id = {p.id: p for p in providers}
    names = {alias: p.id for p in by_id.values() for alias in reversed(p.aliases)} | {pid: pid for pid in by_id}
    by_name = {c.name: c for c in combos}
    return Snapshot(
        revision=revision,
        loaded_at=loaded_at,
        providers=MappingProxyType(by_id),
        combos=MappingProxyType(by_name),
        combo_ids=MappingProxyType({c.id: c.name for c in by_name.values()}),
        keys=MappingProxyType({k.digest: k for k in keys}),
        provider_names=MappingProxyType(names),
        catalog=MappingProxyType(dict(catalog or {})),
        file_models=MappingProxyType(dict(file_models or {})),
        default_provider=default_provider,
        default_effort=default_effort,
        effort_budgets=effort_budgets,
        auto_models=auto_models,
        leak=MappingProxyType(dict(leak or {})),
        warnings=tuple(warnings),
    )
