"""Fakes of the repositories of providers and connections; the others are in `fake_store`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from troyproxy.catalog.providers import Account, StoredProvider
from troyproxy.errors import Conflict, NotFound, PreconditionFailed, StoreUnavailable


class FakeConnections:
    """Accounts in memory. *down*: the database cannot be read."""

    def __init__(self) -> None:
        self.held: dict[str, Account] = {}
        self.down = False

    async def list(self) -> list[Account]:
        if self.down:
            raise StoreUnavailable("down")
        return list(self.held.values())

    async def add(self, account: Account) -> Account:
        if account.id in self.held:
            raise Conflict("taken")
        self.held[account.id] = account
        return account

    async def find(self, account_id: str) -> Account | None:
        return self.held.get(account_id)

    async def replace(self, account: Account, *, expected_version: int | None = None) -> Account:
        stored = self._known(account.id)
        if expected_version not in {None, stored.version}:
            raise PreconditionFailed("changed")
        self.held[account.id] = replace(account, version=stored.version + 1)
        return self.held[account.id]

    async def remove(self, account_id: str) -> None:
        self._known(account_id)
        del self.held[account_id]

    def _known(self, account_id: str) -> Account:
        if account_id not in self.held:
            raise NotFound(account_id)
        return self.held[account_id]


class FakeProviders:
    """Providers in memory; the connections that come with them are held by *connections*."""

    def __init__(self, connections: FakeConnections) -> None:
        self.held: dict[str, StoredProvider] = {}
        self._connections = connections

    async def list(self) -> list[StoredProvider]:
        return list(self.held.values())

    async def add(
        self, provider: StoredProvider, *, accounts: Sequence[Account] = (), drop_keys: bool = False
    ) -> StoredProvider:
        if provider.id in self.held:
            raise Conflict("taken")
        self.held[provider.id] = replace(provider, version=1)
        self._follow(provider.id, accounts, drop_keys=drop_keys)
        return self.held[provider.id]

    async def replace(
        self,
        provider: StoredProvider,
        *,
        expected_version: int | None = None,
        accounts: Sequence[Account] = (),
        drop_keys: bool = False,
    ) -> StoredProvider:
        stored = self._known(provider.id)
        if expected_version not in {None, stored.version}:
            raise PreconditionFailed("changed")
        self.held[provider.id] = replace(provider, version=stored.version + 1)
        self._follow(provider.id, accounts, drop_keys=drop_keys)
        return self.held[provider.id]

    async def remove(self, provider_id: str, *, cascade: bool = False) -> None:
        ours = [account.id for account in self._connections.held.values() if account.provider == provider_id]
        if ours and not cascade:
            raise Conflict("in use")
        if not ours:
            self._known(provider_id)
        self.held.pop(provider_id, None)
        for account_id in ours:
            del self._connections.held[account_id]

    def _follow(self, provider_id: str, accounts: Sequence[Account], *, drop_keys: bool) -> None:
        held = self._connections.held
        dropped = {a.id: replace(a, api_key=None) for a in held.values() if drop_keys and a.provider == provider_id}
        held.update(dropped | {account.id: account for account in accounts})

    def _known(self, provider_id: str) -> StoredProvider:
        if provider_id not in self.held:
            raise NotFound(provider_id)
        return self.held[provider_id]
