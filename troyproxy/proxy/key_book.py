"""Client keys as an operator writes them: read, checked against every other key, and stored.

The admin API and the command line both write through here. The settings of a key are those of the config file; keys
that do not live in the database are shown and refused. A secret is made here, handed out once, and kept as its SHA-256
only. Knows neither HTTP nor who asks; the caller has the caches of keys dropped (`Authenticator.forget`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from troyproxy.catalog import naming
from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import Origin
from troyproxy.catalog.secret import Secret
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import Conflict, NotFound, PreconditionFailed
from troyproxy.ports import Clock, Store
from troyproxy.proxy.authenticator import digest_of, generate_key
from troyproxy.proxy.key_words import read_grace, read_key, refuse_id, written_settings
from troyproxy.proxy.rewriting import rewritten
from troyproxy.routing.lookup import shown


@dataclass(frozen=True, slots=True)
class WrittenKey:
    """The key as stored, its secret where one was made just now, and what is odd about it, one sentence each."""

    key: Key
    secret: Secret | None = None
    warnings: list[str] = field(default_factory=list)


ID_PREFIX: Final = "key_"


class KeyBook:
    """The client keys of *store*, beside those that *snapshot* holds from elsewhere; *file* is what errors call that.

    A key goes by its id, else by its name in any case. Writes of one process take turns. Every method raises
    StoreUnavailable too.
    """

    def __init__(
        self, store: Store, snapshot: Callable[[], Snapshot], clock: Clock, *, file: str = "the config file"
    ) -> None:
        self._keys, self._snapshot, self._clock, self._file = store.keys, snapshot, clock, file
        self._turn = asyncio.Lock()

    async def entries(self) -> list[Key]:
        """Return every key, by id: those of the database and of the file, and what the caller of the gateway added."""
        return sorted([*self._snapshot().keys.values(), *await self._keys.list()], key=lambda key: key.id)

    async def find(self, name: str) -> Key:
        """Return the key. Raises NotFound."""
        return _found(name, await self.entries())

    async def create(self, raw: Mapping[str, object]) -> WrittenKey:
        """Make a key and its secret. Raises ValidationFailed, Conflict."""
        async with self._turn:
            settings = read_key(raw)
            self._check_name(settings.name, await self.entries())
            secret = generate_key()
            key = replace(settings, id=ID_PREFIX + secrets.token_hex(8), digest=digest_of(secret.encode()))
            return self._written(await self._keys.add(key), secret)

    async def replace(self, name: str, raw: Mapping[str, object], expected_version: int | None = None) -> WrittenKey:
        """Give the key the settings of *raw*, and no other; a name that is not given stays, and so does the secret.

        Raises NotFound, PreconditionFailed when the stored version is not *expected_version*, and as `create`;
        Conflict for a revoked key too.
        """
        async with self._turn:
            keys = await self.entries()
            return await self._put(self._ours(name, keys), raw, expected_version, keys)

    async def change(self, name: str, raw: Mapping[str, object], expected_version: int | None = None) -> WrittenKey:
        """Give the key the fields of *raw* beside what it has. Raises as `replace`."""

        async def change() -> WrittenKey:
            keys = await self.entries()
            before = self._ours(name, keys)
            version = before.version if expected_version is None else expected_version
            return await self._put(before, {**written_settings(before), **raw}, version, keys)

        async with self._turn:
            return await rewritten(change, expected_version)

    async def revoke(self, name: str, expected_version: int | None = None) -> WrittenKey:
        """End the key for good, now; once more is no error. Raises NotFound, PreconditionFailed, Conflict."""
        async with self._turn:
            key = self._ours(name, await self.entries())
            _check_version(key, expected_version)
            return self._written(await self._keys.revoke(key.id, at=self._clock.now()))

    async def rotate(
        self, name: str, raw: Mapping[str, object] | None = None, expected_version: int | None = None
    ) -> WrittenKey:
        """Give the key another secret; all else stays.

        *raw* may have ``grace_s``: so many seconds the old secret works beside the new one; without it, no more. Raises
        as `replace`.
        """
        grace_s = read_grace(raw or {})
        async with self._turn:
            key = self._ours(name, await self.entries())
            secret = generate_key()
            stored = await self._keys.rotate(
                key.id,
                digest_of(secret.encode()),
                old_until=self._clock.now() + grace_s if grace_s else None,
                expected_version=expected_version,
            )
            return self._written(stored, secret)

    async def remove(self, name: str, expected_version: int | None = None) -> Key:
        """Remove the key, which ends it too, and return what it was. Raises NotFound, PreconditionFailed, Conflict."""
        async with self._turn:
            key = self._ours(name, await self.entries())
            _check_version(key, expected_version)
            await self._keys.remove(key.id)
            return key

    async def _put(
        self, before: Key, raw: Mapping[str, object], expected_version: int | None, keys: Iterable[Key]
    ) -> WrittenKey:
        refuse_id(raw, before.id)
        given = {key: value for key, value in raw.items() if value is not None and key != "id"}
        settings = read_key({"name": before.name, **given})
        self._check_name(settings.name, (key for key in keys if key.id != before.id))
        key = replace(settings, id=before.id)
        return self._written(await self._keys.replace(key, expected_version=expected_version))

    def _written(self, key: Key, secret: str | None = None) -> WrittenKey:
        return WrittenKey(key, None if secret is None else Secret(secret), list(self._oddities(key)))

    def _oddities(self, key: Key) -> Iterable[str]:
        if key.provider is not None and self._snapshot().provider(key.provider) is None:
            yield f"{key.provider} is no configured provider: the preference has no effect until it is one"
        if key.expires_at is not None and key.expires_at <= self._clock.now():
            yield "the key has expired already"

    def _check_name(self, name: str, others: Iterable[Key]) -> None:
        for other in others:
            if naming.same_name(name) in {naming.same_name(other.name), other.id}:
                raise self._taken(other)

    def _ours(self, name: str, keys: Iterable[Key]) -> Key:
        key = _found(name, keys)
        if key.origin is not Origin.DATABASE:
            raise self._taken(key)
        return key

    def _taken(self, key: Key) -> Conflict:
        if key.origin is Origin.DATABASE:
            return Conflict(f"a key {key.name!r} with the id {key.id!r} exists", param="name")
        if key.origin is Origin.FILE:
            return Conflict(f"the key {key.name!r} belongs to {self._file}; change it there", param="name")
        return Conflict(f"the key {key.name!r} is built in and cannot be changed", param="name")


def _found(name: str, keys: Iterable[Key]) -> Key:
    """Return the key with the id *name*, else the one of that name; one that can be changed before another."""
    known = sorted(keys, key=lambda key: key.origin is not Origin.DATABASE)
    folded = naming.same_name(name)
    for matches in (lambda key: key.id == name, lambda key: naming.same_name(key.name) == folded):
        if key := next(filter(matches, known), None):
            return key
    raise NotFound(f"there is no key '{shown(name)}'")


def _check_version(key: Key, expected_version: int | None) -> None:
    if expected_version not in {None, key.version}:
        raise PreconditionFailed(f"the key is at version {key.version}, not {expected_version}")
