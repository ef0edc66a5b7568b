"""Client keys, found by the SHA-256 of their secret. The secret itself never comes here."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from sqlalchemy import Row, func, insert, select, update

from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import Origin
from troyproxy.errors import NotFound
from troyproxy.ports import Clock
from troyproxy.store.database import Database
from troyproxy.store.encoding import fold, plain
from troyproxy.store.tables import KEYS


class SqlKeys:
    """`ports.KeyRepository`. Every method raises StoreUnavailable too."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def list(self) -> list[Key]:
        """Return every key, revoked ones too, oldest first."""
        async with self._database.read() as connection:
            rows = (await connection.execute(select(KEYS).order_by(KEYS.c.created_at, KEYS.c.id))).all()
        return [_key(row) for row in rows]

    async def find(self, digest: bytes) -> Key | None:
        """Return the key with this digest, valid or not: ask `Key.valid`."""
        async with self._database.read() as connection:
            row = (await connection.execute(select(KEYS).where(KEYS.c.digest == digest.hex()))).one_or_none()
        return None if row is None else _key(row)

    async def add(self, key: Key) -> Key:
        """Store *key* and return it as stored. Raises Conflict when its name (in any case), id or secret is taken."""
        stored = replace(key, created_at=key.created_at or self._clock.now(), origin=Origin.DATABASE)
        async with self._database.change("a key with this name, id or secret exists") as connection:
            await connection.execute(insert(KEYS), _row(stored))
        return stored

    async def revoke(self, key_id: str, *, at: float) -> Key:
        """Revoke the key as of *at* (unix seconds) and return it; the first revocation stays. Raises NotFound."""
        revoked = func.coalesce(KEYS.c.revoked_at, at)
        change = update(KEYS).where(KEYS.c.id == key_id).values(revoked_at=revoked).returning(*KEYS.c)
        async with self._database.change("") as connection:
            row = (await connection.execute(change)).one_or_none()
            if row is None:
                raise NotFound(f"there is no key with the id {key_id!r}")
        return _key(row)


def _row(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "name_folded": fold(key.name),
        "digest": key.digest.hex(),
        "models": plain(key.models),
        "provider": key.provider,
        "limits": plain(key.limits),
        "leak": plain(key.leak),
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "created_at": key.created_at,
    }


def _key(row: Row[tuple[object, ...]]) -> Key:
    return Key(
        id=row.id,
        name=row.name,
        digest=bytes.fromhex(row.digest),
        models=tuple(row.models),
        provider=row.provider,
        limits=MappingProxyType(row.limits),
        leak=MappingProxyType(row.leak),
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        created_at=row.created_at,
        origin=Origin.DATABASE,
    )
