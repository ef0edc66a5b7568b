"""Connections: accounts of providers, added through the API. Their keys are encrypted before they are stored."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from sqlalchemy import Row, delete, insert, select

from troyproxy.catalog.providers import Account, Origin
from troyproxy.catalog.secret import Secret
from troyproxy.errors import ConfigError, NotFound
from troyproxy.ports import Clock
from troyproxy.store.database import Database
from troyproxy.store.encoding import fold, plain
from troyproxy.store.secrets import SecretBox
from troyproxy.store.tables import CONNECTIONS

_NO_KEY = "upstream keys cannot be stored or read without TROY_SECRET_KEY: set it"


class SqlConnections:
    """`ports.ConnectionRepository`. Raises StoreUnavailable too, and ConfigError when the secret key does not fit."""

    def __init__(self, database: Database, clock: Clock, box: SecretBox | None) -> None:
        self._database = database
        self._clock = clock
        self._box = box

    async def list(self) -> list[Account]:
        """Return every connection, oldest first."""
        async with self._database.read() as connection:
            order = select(CONNECTIONS).order_by(CONNECTIONS.c.created_at, CONNECTIONS.c.id)
            rows = (await connection.execute(order)).all()
        return [self._account(row) for row in rows]

    async def add(self, account: Account) -> Account:
        """Store *account* and return it as stored. Raises Conflict when its provider has that name, in any case."""
        stored = replace(account, created_at=account.created_at or self._clock.now(), origin=Origin.DATABASE)
        row = self._row(stored)
        async with self._database.change(f"{account.provider} has a connection of this name") as connection:
            await connection.execute(insert(CONNECTIONS), row)
        return stored

    async def remove(self, account_id: str) -> None:
        """Remove a connection. Raises NotFound."""
        async with self._database.change("") as connection:
            gone = await connection.execute(delete(CONNECTIONS).where(CONNECTIONS.c.id == account_id))
            if gone.rowcount == 0:
                raise NotFound(f"there is no connection with the id {account_id!r}")

    def _seal(self, secret: Secret | None) -> str | None:
        if secret is None:
            return None
        if self._box is None:
            raise ConfigError(_NO_KEY)
        return self._box.seal(secret)

    def _open(self, sealed: str | None) -> Secret | None:
        if sealed is None:
            return None
        if self._box is None:
            raise ConfigError(_NO_KEY)
        return self._box.open(sealed)

    def _row(self, account: Account) -> dict[str, object]:
        return {
            "id": account.id,
            "provider": account.provider,
            "name": account.name,
            "name_folded": fold(account.name),
            "api_key": self._seal(account.api_key),
            "models": plain(account.models),
            "default_model": account.default_model,
            "tier": account.tier,
            "priority": account.priority,
            "quota": plain(account.quota),
            "quota_reset_interval_s": account.quota_reset_interval_s,
            "max_inflight": account.max_inflight,
            "token_expires_at": account.token_expires_at,
            "active": account.active,
            "created_at": account.created_at,
        }

    def _account(self, row: Row[tuple[object, ...]]) -> Account:
        return Account(
            id=row.id,
            provider=row.provider,
            name=row.name,
            api_key=self._open(row.api_key),
            models=tuple(row.models),
            default_model=row.default_model,
            tier=row.tier,
            priority=row.priority,
            quota=None if row.quota is None else MappingProxyType(row.quota),
            quota_reset_interval_s=row.quota_reset_interval_s,
            max_inflight=row.max_inflight,
            token_expires_at=row.token_expires_at,
            active=row.active,
            created_at=row.created_at,
            origin=Origin.DATABASE,
        )
