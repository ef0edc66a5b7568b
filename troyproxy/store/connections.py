"""Connections: accounts of providers, added through the API. Their keys are encrypted before they are stored."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import delete, select

from troyproxy.catalog.providers import Account, Origin
from troyproxy.errors import NotFound, PreconditionFailed
from troyproxy.ports import Clock
from troyproxy.store.connection_rows import ConnectionRows, locked
from troyproxy.store.database import Database
from troyproxy.store.tables import CONNECTIONS


class SqlConnections:
    """`ports.ConnectionRepository`. Raises StoreUnavailable too, and ConfigError when the secret key does not fit."""

    def __init__(self, database: Database, clock: Clock, rows: ConnectionRows) -> None:
        self._database = database
        self._clock = clock
        self._rows = rows

    async def list(self) -> list[Account]:
        """Return every connection, oldest first."""
        async with self._database.read() as connection:
            order = select(CONNECTIONS).order_by(CONNECTIONS.c.created_at, CONNECTIONS.c.id)
            rows = (await connection.execute(order)).all()
        return [self._rows.account(row) for row in rows]

    async def find(self, account_id: str) -> Account | None:
        """Return the connection with this id, None when there is none."""
        async with self._database.read() as connection:
            wanted = select(CONNECTIONS).where(CONNECTIONS.c.id == account_id)
            row = (await connection.execute(wanted)).one_or_none()
        return None if row is None else self._rows.account(row)

    async def add(self, account: Account) -> Account:
        """Store *account* as version 1 and return it as stored. Raises Conflict when its provider has that name."""
        created_at = account.created_at or self._clock.now()
        stored = replace(account, version=1, created_at=created_at, origin=Origin.DATABASE)
        async with self._database.change(_taken(account)) as connection:
            await self._rows.insert(connection, stored)
        return stored

    async def replace(self, account: Account, *, expected_version: int | None = None) -> Account:
        """Store *account* over the one with its id and return it as stored, one version later.

        Its id, provider and age stay. Raises NotFound, Conflict for a name that is taken, PreconditionFailed when
        *expected_version* is not stored.
        """
        async with self._database.change(_taken(account)) as connection:
            before = await locked(connection, account.id)
            if before is None:
                raise _unknown(account.id)
            if expected_version not in {None, before.version}:
                raise PreconditionFailed(f"the connection is at version {before.version}, not {expected_version}")
            kept = {"provider": before.provider, "created_at": before.created_at, "version": before.version + 1}
            stored = replace(account, **kept, origin=Origin.DATABASE)
            await self._rows.update(connection, stored)
        return stored

    async def remove(self, account_id: str) -> None:
        """Remove a connection. Raises NotFound."""
        async with self._database.change("") as connection:
            gone = await connection.execute(delete(CONNECTIONS).where(CONNECTIONS.c.id == account_id))
            if gone.rowcount == 0:
                raise _unknown(account_id)


def _taken(account: Account) -> str:
    return f"{account.provider} has a connection of this name"


def _unknown(account_id: str) -> NotFound:
    return NotFound(f"there is no connection with the id {account_id!r}")
