"""Accounts to rows of the table of connections and back, their keys sealed and opened on the way. Asks no database."""

from __future__ import annotations

from types import MappingProxyType

from sqlalchemy import Row, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from troyproxy.catalog.providers import Account, Origin
from troyproxy.catalog.secret import Secret
from troyproxy.errors import ConfigError
from troyproxy.store.encoding import fold, plain
from troyproxy.store.secrets import SecretBox
from troyproxy.store.tables import CONNECTIONS

_NO_KEY = "upstream keys cannot be stored or read without TROY_SECRET_KEY: set it"


class ConnectionRows:
    """How a connection is stored. Raises ConfigError when there is a key, and no secret key that fits it."""

    def __init__(self, box: SecretBox | None) -> None:
        self._box = box

    def account(self, row: Row[tuple[object, ...]]) -> Account:
        """Return the account in *row*, its key opened."""
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
            version=row.version,
        )

    async def insert(self, connection: AsyncConnection, account: Account) -> None:
        """Add the row of *account*, with the columns that never change."""
        fixed = {"id": account.id, "provider": account.provider, "created_at": account.created_at}
        await connection.execute(insert(CONNECTIONS), {**fixed, **self._row(account)})

    async def update(self, connection: AsyncConnection, account: Account) -> None:
        """Write *account* over the row with its id."""
        await connection.execute(update(CONNECTIONS).where(CONNECTIONS.c.id == account.id), self._row(account))

    def _row(self, account: Account) -> dict[str, object]:
        return {
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
            "version": account.version,
        }

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


async def locked(connection: AsyncConnection, account_id: str) -> Row[tuple[object, ...]] | None:
    """Return the row of a connection, held until the transaction ends; None when there is none."""
    wanted = select(CONNECTIONS).where(CONNECTIONS.c.id == account_id).with_for_update()
    return (await connection.execute(wanted)).one_or_none()
