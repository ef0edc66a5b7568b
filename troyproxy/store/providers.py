"""Providers that were written through the API, each as it would stand in the config file. What it means is not known.

A write may bring connections, and may take away keys that were given for the provider as it was: all of it is one
transaction, so that no process ever sees a new address with a credential that was meant for the old one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from troyproxy.catalog.providers import Account, Origin, StoredProvider
from troyproxy.errors import Conflict, NotFound, PreconditionFailed
from troyproxy.ports import Clock
from troyproxy.store.connection_rows import ConnectionRows, locked
from troyproxy.store.database import Database
from troyproxy.store.encoding import plain
from troyproxy.store.tables import CONNECTIONS, PROVIDERS

_NAMED = 5
"""Connections that an error names."""


class SqlProviders:
    """`ports.ProviderRepository`. Raises StoreUnavailable too, and ConfigError when the secret key does not fit."""

    def __init__(self, database: Database, clock: Clock, rows: ConnectionRows) -> None:
        self._database = database
        self._clock = clock
        self._rows = rows

    async def list(self) -> list[StoredProvider]:
        """Return every provider, oldest first."""
        async with self._database.read() as connection:
            order = select(PROVIDERS).order_by(PROVIDERS.c.created_at, PROVIDERS.c.id)
            rows = (await connection.execute(order)).all()
        return [_provider(row) for row in rows]

    async def add(
        self, provider: StoredProvider, *, accounts: Sequence[Account] = (), drop_keys: bool = False
    ) -> StoredProvider:
        """Store *provider* as version 1 and return it as stored. Raises Conflict when its id or a name is taken."""
        stored = replace(provider, version=1, created_at=provider.created_at or self._clock.now())
        async with self._database.change(_taken(provider)) as connection:
            row = {"id": stored.id, "created_at": stored.created_at, **_row(stored)}
            await connection.execute(insert(PROVIDERS), row)
            await self._follow(connection, stored.id, accounts, drop_keys=drop_keys)
        return stored

    async def replace(
        self,
        provider: StoredProvider,
        *,
        expected_version: int | None = None,
        accounts: Sequence[Account] = (),
        drop_keys: bool = False,
    ) -> StoredProvider:
        """Store *provider* over the one with its id and return it as stored, one version later.

        Raises NotFound, PreconditionFailed when *expected_version* is not stored, Conflict for an account's name.
        """
        async with self._database.change(_taken(provider)) as connection:
            found = await connection.execute(select(PROVIDERS).where(PROVIDERS.c.id == provider.id).with_for_update())
            before = found.one_or_none()
            if before is None:
                raise _unknown(provider.id)
            if expected_version not in {None, before.version}:
                raise PreconditionFailed(f"the provider is at version {before.version}, not {expected_version}")
            stored = replace(provider, version=before.version + 1, created_at=before.created_at)
            await connection.execute(update(PROVIDERS).where(PROVIDERS.c.id == stored.id), _row(stored))
            await self._follow(connection, stored.id, accounts, drop_keys=drop_keys)
        return stored

    async def remove(self, provider_id: str, *, cascade: bool = False) -> None:
        """Remove the provider, and with *cascade* its connections, which may be all there is of a built-in one.

        Raises Conflict when it has connections and *cascade* is off, NotFound when there is neither.
        """
        async with self._database.change("") as connection:
            gone = (await connection.execute(delete(PROVIDERS).where(PROVIDERS.c.id == provider_id))).rowcount
            ours = CONNECTIONS.c.provider == provider_id
            names = (await connection.execute(select(CONNECTIONS.c.name).where(ours).order_by(CONNECTIONS.c.id))).all()
            if names and not cascade:
                raise _in_use(provider_id, [row.name for row in names])
            if not gone and not names:
                raise _unknown(provider_id)
            await connection.execute(delete(CONNECTIONS).where(ours))

    async def _follow(
        self, connection: AsyncConnection, provider_id: str, accounts: Sequence[Account], *, drop_keys: bool
    ) -> None:
        """Store the accounts that come with a write, and empty the keys of the others if they must go."""
        for account in accounts:
            await self._put(connection, account)
        if not drop_keys:
            return
        ours = CONNECTIONS.c.provider == provider_id
        others = CONNECTIONS.c.id.not_in([account.id for account in accounts])
        keyless = {"api_key": None, "version": CONNECTIONS.c.version + 1}
        held = CONNECTIONS.c.api_key.is_not(None)
        await connection.execute(update(CONNECTIONS).where(ours, others, held).values(keyless))

    async def _put(self, connection: AsyncConnection, account: Account) -> None:
        before = await locked(connection, account.id)
        if before is None:
            created_at = account.created_at or self._clock.now()
            new = replace(account, version=1, created_at=created_at, origin=Origin.DATABASE)
            await self._rows.insert(connection, new)
        else:
            await self._rows.update(connection, replace(account, version=before.version + 1))


def _row(provider: StoredProvider) -> dict[str, object]:
    """Return the columns that an update may change."""
    return {"config": plain(provider.config), "version": provider.version}


def _provider(row: Row[tuple[object, ...]]) -> StoredProvider:
    return StoredProvider(row.id, MappingProxyType(row.config), row.version, row.created_at)


def _taken(provider: StoredProvider) -> str:
    return f"a provider with the id {provider.id!r}, or one of its connections, exists"


def _unknown(provider_id: str) -> NotFound:
    return NotFound(f"there is no provider with the id {provider_id!r} in the database")


def _in_use(provider_id: str, names: Sequence[str]) -> Conflict:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    told = ", ".join(names[:_NAMED]) + more
    return Conflict(f"{provider_id} has connections: {told}; remove them first, or give ?cascade=true")
