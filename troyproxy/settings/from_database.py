"""Providers and accounts of the database join those of the file and the environment, which keep what they have.

A row that cannot be used, perhaps written by an older version, is left out with a warning: the database must not keep
the gateway from starting. Keys that were given for such a row go nowhere else. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from troyproxy.catalog.providers import Account, Origin, Provider, StoredProvider
from troyproxy.settings.builtin import Builtin
from troyproxy.settings.checks import hint_of
from troyproxy.settings.document import ProviderEntry
from troyproxy.settings.merging import merged, target
from troyproxy.settings.report import Report
from troyproxy.settings.stored_shapes import read_provider

Builtins = Mapping[str, Builtin]


def add_stored(
    rows: Iterable[StoredProvider],
    accounts: Iterable[Account],
    found: dict[str, Provider],
    builtins: Builtins,
    report: Report,
) -> Mapping[str, ProviderEntry]:
    """Add to *found* what the database holds, and return the entries of its providers as they are written."""
    written: dict[str, ProviderEntry] = {}
    estranged: set[str] = set()
    for row in rows:
        entry = _entry(row, builtins, report)
        ours = None if entry is None else merged(row.id, entry, builtins.get(row.id), Origin.DATABASE)
        other = found.get(row.id)
        if other is not None:
            report.warn(f"provider {row.id}", f"the one in the database is hidden by the {other.origin} one")
        if ours is None or (other is not None and target(ours) != target(other)):
            estranged.add(row.id)
        elif entry is not None and other is None:
            written[row.id] = entry
            found[row.id] = _unclashed(ours, found, report)
    for account in accounts:
        if account.provider in estranged:
            report.warn(f"connection {account.id}", "was given for the provider in the database; it is left out")
        else:
            _add_account(account, found, builtins, report)
    return written


def checked(name: str, raw: Mapping[str, object], builtins: Builtins, report: Report) -> ProviderEntry | None:
    """Return the entry *raw* of the provider *name*, None when something is wrong with it; *report* says what."""
    entry = read_provider(raw, report)
    if entry is not None and entry.base_url is None and name not in builtins:
        report.wrong("base_url", f"is required: {name} is no built-in provider{hint_of(name, builtins)}")
        return None
    return entry if not report.problems else None


def implied(name: str, builtins: Builtins) -> Provider | None:
    """Return the built-in provider that a connection configures without another word; None when *name* is none."""
    builtin = builtins.get(name)
    return None if builtin is None else replace(builtin.provider(name), origin=Origin.DATABASE)


def _entry(row: StoredProvider, builtins: Builtins, report: Report) -> ProviderEntry | None:
    problems = Report()
    entry = checked(row.id, row.config, builtins, problems)
    for place, message in problems.problems:
        report.warn(f"provider {row.id}", f"{place}: {message}; it is left out")
    return entry


def _unclashed(provider: Provider, found: Mapping[str, Provider], report: Report) -> Provider:
    """Return *provider* without the aliases that already mean another one."""
    taken = {name: other.id for other in found.values() for name in (other.id, *other.aliases)}
    for alias in taken.keys() & {*provider.aliases}:
        report.warn(f"provider {provider.id}", f"the alias {alias} means {taken[alias]}; it is left out")
    return replace(provider, aliases=tuple(alias for alias in provider.aliases if alias not in taken))


def _add_account(account: Account, found: dict[str, Provider], builtins: Builtins, report: Report) -> None:
    place, provider = f"connection {account.id}", found.get(account.provider)
    if provider is None and (built_in := implied(account.provider, builtins)) is not None:
        provider = found[built_in.id] = _unclashed(built_in, found, report)
    if provider is None:
        report.warn(place, f"there is no provider {account.provider}; it is left out")
    elif any(other.id == account.id for other in provider.accounts):
        report.warn(place, "is hidden by an account of this name in the file or environment")
    elif account.api_key is None and not provider.keyless:
        report.warn(place, "has no api_key; it is left out")
    else:
        found[provider.id] = replace(provider, accounts=(*provider.accounts, account))
