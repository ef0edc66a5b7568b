"""Client keys, found by the SHA-256 of their secret. The secret itself never comes here."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from sqlalchemy import Row, delete, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import Origin
from troyproxy.errors import Conflict, NotFound, PreconditionFailed
from troyproxy.ports import Clock
from troyproxy.store.database import Database
from troyproxy.store.encoding import fold, plain
from troyproxy.store.tables import KEYS

_TAKEN = "a key with this name, id or secret exists"


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
        """Return the key that has, or before its rotation had, this digest: ask `Key.valid` and `Key.digests`."""
        wanted = or_(KEYS.c.digest == digest.hex(), KEYS.c.previous_digest == digest.hex())
        async with self._database.read() as connection:
            row = (await connection.execute(select(KEYS).where(wanted))).one_or_none()
        return None if row is None else _key(row)

    async def add(self, key: Key) -> Key:
        """Store *key* as version 1 and return it as stored.

        Raises Conflict when its name (in any case), id or secret is taken.
        """
        stored = replace(key, version=1, created_at=key.created_at or self._clock.now(), origin=Origin.DATABASE)
        own = {"id": stored.id, "digest": stored.digest.hex(), "created_at": stored.created_at}
        async with self._database.change(_TAKEN) as connection:
            await connection.execute(insert(KEYS), {**own, **_settings(stored), "version": 1})
        return stored

    async def replace(self, key: Key, *, expected_version: int | None = None) -> Key:
        """Store name and settings of *key* over those of the one with its id, and return it as stored.

        Its secret, age and end stay, so that no write undoes a revocation or a rotation that it has not seen. Raises
        NotFound, Conflict for a name that is taken or a key that is revoked, PreconditionFailed when
        *expected_version* is not stored.
        """
        async with self._database.change(_TAKEN) as connection:
            await _changeable(connection, key.id, expected_version)
            return await _update(connection, key.id, _settings(key))

    async def rotate(
        self, key_id: str, digest: bytes, *, old_until: float | None = None, expected_version: int | None = None
    ) -> Key:
        """Put *digest* in place of the key's and return it as stored. Raises as `replace`.

        The secret before works until *old_until* (unix seconds), without it no more; one before that has ended.
        """
        async with self._database.change(_TAKEN) as connection:
            before = await _changeable(connection, key_id, expected_version)
            old = {"previous_digest": None if old_until is None else before.digest, "previous_until": old_until}
            return await _update(connection, key_id, {"digest": digest.hex(), **old})

    async def revoke(self, key_id: str, *, at: float) -> Key:
        """Revoke the key as of *at* (unix seconds) and return it; the first revocation stays. Raises NotFound."""
        async with self._database.change("") as connection:
            return await _update(connection, key_id, {"revoked_at": func.coalesce(KEYS.c.revoked_at, at)})

    async def remove(self, key_id: str) -> None:
        """Remove the key; its usage stays. Raises NotFound."""
        async with self._database.change("") as connection:
            if (await connection.execute(delete(KEYS).where(KEYS.c.id == key_id))).rowcount == 0:
                raise _unknown(key_id)


async def _changeable(
    connection: AsyncConnection, key_id: str, expected_version: int | None
) -> Row[tuple[object, ...]]:
    """Return the row, which nobody else changes before us. Raises NotFound, Conflict, PreconditionFailed."""
    row = (await connection.execute(select(KEYS).where(KEYS.c.id == key_id).with_for_update())).one_or_none()
    if row is None:
        raise _unknown(key_id)
    if expected_version not in {None, row.version}:
        raise PreconditionFailed(f"the key is at version {row.version}, not {expected_version}")
    if row.revoked_at is not None:
        raise Conflict(f"the key {row.name} is revoked, which is for good")
    return row


async def _update(connection: AsyncConnection, key_id: str, columns: dict[str, object]) -> Key:
    change = update(KEYS).where(KEYS.c.id == key_id).values({**columns, "version": KEYS.c.version + 1})
    row = (await connection.execute(change.returning(*KEYS.c))).one_or_none()
    if row is None:
        raise _unknown(key_id)
    return _key(row)


def _unknown(key_id: str) -> NotFound:
    return NotFound(f"there is no key with the id {key_id!r}")


def _settings(key: Key) -> dict[str, object]:
    return {
        "name": key.name,
        "name_folded": fold(key.name),
        "models": plain(key.models),
        "provider": key.provider,
        "limits": plain(key.limits),
        "leak": plain(key.leak),
        "expires_at": key.expires_at,
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
        version=row.version,
        previous_digest=None if row.previous_digest is None else bytes.fromhex(row.previous_digest),
        previous_until=row.previous_until,
    )
