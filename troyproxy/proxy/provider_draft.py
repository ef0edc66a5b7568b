"""What a write of a provider would store: read, checked against everything that exists, nothing stored yet.

A key that was given for one target (address, authentication, fixed headers, proxy, CA) is for no other: where the
target changes, stored keys go, unless new ones come with the write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from troyproxy.catalog import naming
from troyproxy.catalog.providers import Account, Origin, Provider, StoredProvider
from troyproxy.proxy.connection_book import READ_ONLY as READ_ONLY_OF_CONNECTIONS
from troyproxy.proxy.connection_book import read_account, written_fields
from troyproxy.proxy.provider_entries import READ_ONLY, Entry
from troyproxy.proxy.provider_picture import Picture, refused
from troyproxy.routing.resolvers import connected
from troyproxy.settings.from_database import checked, implied
from troyproxy.settings.merging import merged, target
from troyproxy.settings.report import Report, below

MAX_CONNECTIONS: Final = 100
"""Connections that may come with one write."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A provider to be stored, with the connections that come with it."""

    row: StoredProvider
    accounts: tuple[Account, ...]
    drop_keys: bool
    warnings: tuple[str, ...]


def draft(name: str, raw: Mapping[str, object], picture: Picture) -> Draft:
    """Return what *raw* would store as the provider *name*. Raises ValidationFailed, Conflict."""
    given = {k: v for k, v in raw.items() if v is not None and k not in {"id", "connections", *READ_ONLY}}
    report = Report()
    entry = checked(name, given, picture.builtins, report)
    if entry is not None and entry.ca_file is not None and not _is_file(entry.ca_file):
        report.wrong("ca_file", "there is no such file")
    if entry is None or report.problems:
        raise refused("provider", report.problems)
    picture.refuse_clash(name, {name: "id", **dict.fromkeys(entry.aliases, "aliases")})
    provider = merged(name, entry, picture.builtins.get(name), Origin.DATABASE)
    moved = _moved(provider, picture)
    accounts = tuple(_Accounts(provider, picture, report, keep_keys=not moved).read(raw.get("connections")))
    if report.problems:
        raise refused("provider", report.problems)
    # Texts: a number may have more digits than a database or another language keeps.
    texts: dict[str, object] = {key: _texts(given[key]) for key in ("headers", "query") if key in given}
    row = StoredProvider(name, MappingProxyType({**given, **texts}))
    return Draft(row, accounts, moved, tuple(_dropped(picture.connections_of(name), accounts) if moved else ()))


def _moved(provider: Provider, picture: Picture) -> bool:
    """Whether keys that are stored for *provider* were given for another target, or for nobody knows which."""
    before = picture.providers.get(provider.id)
    if before is None and provider.id not in picture.rows:
        before = implied(provider.id, picture.builtins)
    return before is None or target(before) != target(provider)


class _Accounts:
    """Reads the connections that come with a provider: one that it has is changed, any other is new."""

    def __init__(self, provider: Provider, picture: Picture, report: Report, *, keep_keys: bool) -> None:
        self._provider, self._report, self._keep_keys = provider, report, keep_keys
        self._held = {naming.same_name(account.name): account for account in picture.connections_of(provider.id)}

    def read(self, raw: object) -> Iterator[Account]:
        """Yield the accounts; what is wrong goes into the report."""
        if raw is None:
            return
        if not isinstance(raw, list) or len(raw) > MAX_CONNECTIONS:
            self._report.wrong("connections", f"must be a list of at most {MAX_CONNECTIONS} connections")
            return
        seen: set[str] = set()
        for i, item in enumerate(raw):
            account = self._one(item, below("connections", i))
            if account is None:
                continue
            if naming.same_name(account.name) in seen:
                self._report.wrong(below("connections", i), f"{account.name} stands twice")
            seen.add(naming.same_name(account.name))
            yield account

    def _one(self, raw: object, place: str) -> Account | None:
        if not isinstance(raw, dict):
            self._report.wrong(place, "must be an object")
            return None
        if raw.get("provider") not in (None, self._provider.id):
            self._report.wrong(below(place, "provider"), "is another provider")
        given = {k: v for k, v in raw.items() if k not in {"id", "provider", *READ_ONLY_OF_CONNECTIONS}}
        name = given.get("name")
        before = self._held.get(naming.same_name(name)) if isinstance(name, str) else None
        if before is None:
            return read_account(given, place, self._provider, self._report)
        whole = {**written_fields(before), **given, "name": before.name}
        kept = before if self._keep_keys else replace(before, api_key=None)
        return read_account(whole, place, self._provider, self._report, before=kept)


def _dropped(stored: Sequence[Account], written: Sequence[Account]) -> Iterator[str]:
    renewed = {account.id for account in written if account.api_key is not None}
    names = [account.name for account in stored if account.api_key is not None and account.id not in renewed]
    if names:
        told = ", ".join(names)
        yield f"the address or the way to authenticate changed, so stored keys were dropped: {told}; give them anew"


def oddities(entry: Entry, picture: Picture) -> list[str]:
    """Return what is odd about a provider, one sentence each."""
    mark = f"provider {entry.provider.id}: "
    found = [warning.removeprefix(mark) for warning in picture.warnings if warning.startswith(mark)]
    if not connected(entry.provider):
        found.append("it has no account with a key, so no request is sent to it: POST /api/connections")
    return found


def missed(provider: Provider, picture: Picture) -> list[str]:
    """Return which combos name a provider that is gone, one sentence each."""
    heads = {provider.id, *provider.aliases}
    return [
        f"the combo {combo.name!r} names {provider.id}: that member is skipped"
        for combo in picture.snapshot.combos.values()
        if any(member.model is not None and member.model.partition("/")[0].lower() in heads for member in combo.members)
    ]


def _texts(values: object) -> object:
    return {name: str(value) for name, value in values.items()} if isinstance(values, Mapping) else values


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except OSError:  # a name that is too long
        return False
