"""Checks of the config file that need more than one entry: built-in or custom, keyless or not, literal secrets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from troyproxy.catalog.providers import BEARER, NO_AUTH, Auth
from troyproxy.settings.builtin import Builtin
from troyproxy.settings.document import Document, ProviderEntry
from troyproxy.settings.report import Report, below, nearest


def effective_auth(entry: ProviderEntry, builtin: Builtin | None) -> Auth:
    """Return how the provider is authenticated: as written, else as built in, else bearer; an app needs nothing."""
    if entry.auth is not None:
        return entry.auth
    if entry.app is not None:
        return NO_AUTH
    return builtin.auth if builtin is not None else BEARER


def check_document(document: Document, builtins: Mapping[str, Builtin], report: Report) -> None:
    """Add what is wrong or doubtful in *document* as a whole."""
    names: dict[str, str] = {}
    for name, entry in document.providers.items():
        _check_provider(name, entry, builtins, report)
        for alias in entry.aliases:
            if alias in document.providers or names.setdefault(alias, name) != name:
                report.wrong(f"{below('providers', name)}.aliases", f"{alias} is the name of another provider")
    for i, key in enumerate(document.keys):
        if key.key.literal is not None:
            report.warn(f"keys[{i}].key", "a secret stands in the file; better: env:NAME")


def hint_of(name: str, builtins: Mapping[str, Builtin]) -> str:
    """Return which built-in provider may be meant by *name*, in brackets; nothing when none comes near."""
    owner = next((pid for pid, b in builtins.items() if name in b.aliases), None)
    return f" ({name} is another name of the built-in {owner})" if owner else nearest(name, builtins)


def _check_provider(name: str, entry: ProviderEntry, builtins: Mapping[str, Builtin], report: Report) -> None:
    path, builtin = below("providers", name), builtins.get(name)
    if builtin is None and entry.base_url is None and entry.app is None:
        report.wrong(path, f"is no built-in provider{hint_of(name, builtins)}, so base_url or app is required")
    if entry.ca_file is not None and not Path(entry.ca_file).is_file():
        report.wrong(f"{path}.ca_file", "there is no such file")
    keyless = effective_auth(entry, builtin).header is None
    for i, account in enumerate(entry.accounts):
        if account.api_key is None and not keyless:
            report.wrong(f"{path}.accounts[{i}].api_key", "is required; allowed: env:NAME, or the secret itself")
        if account.api_key is not None and account.api_key.literal is not None:
            report.warn(f"{path}.accounts[{i}].api_key", "a secret stands in the file; better: env:NAME")
    if builtin is None and not keyless and not entry.accounts:
        report.warn(path, "has no account, so no request can be sent to it")
