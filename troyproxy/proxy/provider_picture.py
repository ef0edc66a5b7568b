"""Providers and accounts as they are stored now, beside those that are fixed: what the two books write against.

The snapshot may be half a second behind what another process wrote, so the database's part is read anew; the rest is
the snapshot's. Who may change what is said here; nothing is changed here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from troyproxy.catalog.providers import Account, Origin, Provider, StoredProvider
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import Conflict, ValidationFailed
from troyproxy.ports import Store
from troyproxy.settings.builtin import Builtin
from troyproxy.settings.from_database import add_stored, implied
from troyproxy.settings.report import Report

Problem = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Picture:
    """What is configured, by id."""

    snapshot: Snapshot
    providers: Mapping[str, Provider]
    """With the accounts that count; without models."""
    rows: Mapping[str, StoredProvider]
    """Providers of the database, those that a fixed one hides left out."""
    connections: Mapping[str, Account]
    """Accounts of the database, those that a fixed one hides left out; some may not count, for want of a key."""
    builtins: Mapping[str, Builtin]
    warnings: tuple[str, ...] = ()
    """What the database holds that does not count, each behind whose it is."""

    def accounts(self) -> dict[str, Account]:
        """Return every account that there is, those of the database as they are stored."""
        fixed = {a.id: a for p in self.providers.values() for a in p.accounts if a.origin is not Origin.DATABASE}
        return {**self.connections, **fixed}

    def connections_of(self, provider_id: str) -> list[Account]:
        """Return the stored accounts of a provider, oldest first."""
        return [account for account in self.connections.values() if account.provider == provider_id]

    def refuse_clash(self, provider_id: str, names: Mapping[str, str]) -> None:
        """Raise Conflict when one of *names* (name → field) already means another provider, or the start of a combo."""
        taken = {name: p.id for p in self.providers.values() if p.id != provider_id for name in (*p.aliases, p.id)}
        heads = {c.name.partition("/")[0].casefold(): c.name for c in self.snapshot.combos.values() if "/" in c.name}
        for name, field in names.items():
            if name in taken:
                raise Conflict(f"{name} already means the provider {taken[name]}", param=field)
            if name in heads:
                raise Conflict(f"the combo {heads[name]!r} would read as a model of {name}; rename it", param=field)


class Pictures:
    """Takes pictures of *store* beside what *snapshot* holds from elsewhere; *file* is what errors call the file."""

    def __init__(
        self, store: Store, snapshot: Callable[[], Snapshot], builtins: Mapping[str, Builtin], *, file: str
    ) -> None:
        self._store, self._snapshot, self._builtins, self._file = store, snapshot, builtins, file
        self.turn = asyncio.Lock()
        """Held by who writes: a key must not come between the look at a provider's address and a change of it."""

    async def take(self) -> Picture:
        """Return what is configured now. Raises StoreUnavailable."""
        snapshot = self._snapshot()
        rows, accounts = await self._store.providers.list(), await self._store.connections.list()
        fixed = {p.id: _fixed_part(p) for p in snapshot.providers.values() if p.origin is not Origin.DATABASE}
        held = {account.id for provider in fixed.values() for account in provider.accounts}
        providers = dict(fixed)
        report = Report()
        add_stored(rows, accounts, providers, self._builtins, report)
        return Picture(
            snapshot,
            providers,
            {row.id: row for row in rows if row.id not in fixed},
            {account.id: account for account in accounts if account.id not in held},
            self._builtins,
            tuple(report.warnings),
        )

    def owned(self, what: str, origin: Origin, provider: Provider | None) -> Conflict:
        """Return the error for a change of *what*, which lives elsewhere; the place is named."""
        if origin is Origin.FILE:
            return Conflict(f"{what} belongs to {self._file}; change it there")
        if origin is Origin.ENVIRONMENT:
            names = " or ".join(provider.key_env) if provider is not None else ""
            return Conflict(f"{what} comes from the environment ({names}); change it there")
        return Conflict(f"{what} is built in and cannot be changed")


def configurable(name: str, picture: Picture) -> Provider | None:
    """Return the provider that a connection to *name* (an id or alias) is for: configured, or built in."""
    found = picture.providers.get(name) or next((p for p in picture.providers.values() if name in p.aliases), None)
    if found is not None:
        return found
    known = next((pid for pid, builtin in picture.builtins.items() if name in builtin.aliases), name)
    return picture.providers.get(known) or implied(known, picture.builtins)


def refused(what: str, problems: list[Problem]) -> ValidationFailed:
    """Return the error that tells every problem, each with the path of its field."""
    told = "; ".join(f"{place}: {message}" for place, message in problems[:5])
    details = [{"field": place, "message": message} for place, message in problems]
    return ValidationFailed(f"the {what} is not valid: {told}", details=details)


def _fixed_part(provider: Provider) -> Provider:
    return replace(provider, accounts=tuple(a for a in provider.accounts if a.origin is not Origin.DATABASE))
