"""Providers as an operator writes them: read, checked against everything that exists, and stored.

The rules are those of the config file; entries that do not live in the database are shown and refused. A built-in
provider that has connections is configured by them, and may be written over. Knows neither HTTP nor who asks, and
reloads nothing: the caller does.
"""

from __future__ import annotations

from collections.abc import Mapping

from troyproxy.catalog import naming
from troyproxy.catalog.providers import Origin, Provider
from troyproxy.errors import Conflict, NotFound, PreconditionFailed
from troyproxy.ports import Store
from troyproxy.proxy.provider_draft import draft, missed, oddities
from troyproxy.proxy.provider_entries import Entry, entries_of, entry_of
from troyproxy.proxy.provider_picture import Picture, Pictures, refused
from troyproxy.proxy.rewriting import rewritten
from troyproxy.routing.lookup import shown

Written = tuple[Entry, list[str]]
"""The provider as stored, and what is odd about it, one sentence each."""


class ProviderBook:
    """The providers of *store*. Writes of one process take turns. Every method raises StoreUnavailable too."""

    def __init__(self, store: Store, pictures: Pictures) -> None:
        self._providers, self._pictures = store.providers, pictures
        self._turn = pictures.turn

    async def entries(self) -> list[Entry]:
        """Return every provider that is configured, by id."""
        return list(entries_of(await self._pictures.take()))

    async def find(self, provider_id: str) -> Entry:
        """Return the provider. Raises NotFound."""
        return _found(provider_id, await self._pictures.take())

    async def create(self, raw: Mapping[str, object]) -> Written:
        """Store a new provider, with its `connections` if they come too. Raises ValidationFailed, Conflict."""
        async with self._turn:
            picture = await self._pictures.take()
            name = _id(raw.get("id"))
            if name in picture.rows:
                raise Conflict(f"a provider with the id {name!r} exists", param="id")
            if name in picture.providers:
                self._refuse_fixed(picture.providers[name])
            return await self._put(name, raw, picture, None)

    async def replace(self, provider_id: str, raw: Mapping[str, object], expected_version: int | None) -> Written:
        """Store *raw* in place of the provider. Its connections stay; those that come with it are changed or added.

        Raises NotFound, Conflict, ValidationFailed, PreconditionFailed when the version is not *expected_version*.
        """
        async with self._turn:
            picture = await self._pictures.take()
            entry = self._ours(provider_id, picture, expected_version)
            return await self._put(entry.provider.id, raw, picture, expected_version)

    async def change(self, provider_id: str, raw: Mapping[str, object], expected_version: int | None) -> Written:
        """Store the provider with the fields of *raw* changed; null takes a field away. Raises as `replace`."""

        async def change() -> Written:
            picture = await self._pictures.take()
            entry = self._ours(provider_id, picture, expected_version)
            kept = entry.row.config if entry.row is not None else {}
            version = entry.version if expected_version is None else expected_version
            return await self._put(entry.provider.id, {**kept, **raw}, picture, version)

        async with self._turn:
            return await rewritten(change, expected_version)

    async def remove(self, provider_id: str, expected_version: int | None, *, cascade: bool) -> Written:
        """Remove the provider, with *cascade* its connections too, and return what it was.

        Raises NotFound, PreconditionFailed, Conflict when it has connections and *cascade* is off.
        """
        async with self._turn:
            picture = await self._pictures.take()
            entry = self._ours(provider_id, picture, expected_version)
            await self._providers.remove(entry.provider.id, cascade=cascade)
            return entry, missed(entry.provider, picture)

    async def _put(
        self, name: str, raw: Mapping[str, object], picture: Picture, expected_version: int | None
    ) -> Written:
        if raw.get("id") is not None and raw["id"] != name:
            raise refused("provider", [("id", "cannot be changed")])
        new = draft(name, raw, picture)
        if name in picture.rows:
            await self._providers.replace(
                new.row, expected_version=expected_version, accounts=new.accounts, drop_keys=new.drop_keys
            )
        else:
            await self._providers.add(new.row, accounts=new.accounts, drop_keys=new.drop_keys)
        after = await self._pictures.take()
        entry = _found(name, after)
        return entry, [*new.warnings, *oddities(entry, after)]

    def _ours(self, provider_id: str, picture: Picture, expected_version: int | None) -> Entry:
        entry = _found(provider_id, picture)
        self._refuse_fixed(entry.provider)
        if expected_version not in {None, entry.version}:
            raise PreconditionFailed(f"the provider is at version {entry.version}, not {expected_version}")
        return entry

    def _refuse_fixed(self, provider: Provider) -> None:
        if provider.origin is not Origin.DATABASE:
            raise self._pictures.owned(f"the provider {provider.id}", provider.origin, provider)


def _id(value: object) -> str:
    if value is None:
        raise refused("provider", [("id", "is required")])
    try:
        return naming.provider_id(value if isinstance(value, str) else "")
    except ValueError as exc:
        raise refused("provider", [("id", str(exc))]) from exc


def _found(provider_id: str, picture: Picture) -> Entry:
    entry = entry_of(provider_id, picture)
    if entry is None:
        raise NotFound(f"there is no provider '{shown(provider_id)}'")
    return entry
