"""Connections as an operator writes them: accounts of providers, checked against everything that exists, and stored.

The rules are those of the config file; accounts that come from elsewhere are shown and refused. A key goes in and never
comes out. Knows neither HTTP nor who asks, and reloads nothing: the caller does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from troyproxy.catalog import naming
from troyproxy.catalog.providers import Account, Origin, Provider
from troyproxy.errors import Conflict, NotFound, PreconditionFailed
from troyproxy.ports import Clock, Store
from troyproxy.proxy.provider_picture import Picture, Pictures, configurable, refused
from troyproxy.proxy.rewriting import rewritten
from troyproxy.routing.lookup import shown
from troyproxy.settings.accounts import account_id
from troyproxy.settings.report import Report, below
from troyproxy.settings.stored_shapes import read_connection

READ_ONLY: Final = frozenset({"has_api_key", "origin", "read_only", "version", "created_at", "warnings"})
"""Fields of an answer that may come back in a request, and are ignored there."""
FIXED: Final = ("id", "provider", "name")
"""What stays: locks, pins of combos and usage rows go by it."""

Written = tuple[Account, list[str]]
"""The connection as stored, and what is odd about it, one sentence each."""


class ConnectionBook:
    """The accounts of every provider. Writes of one process take turns. Every method raises StoreUnavailable too."""

    def __init__(self, store: Store, pictures: Pictures, clock: Clock) -> None:
        self._connections, self._pictures, self._clock = store.connections, pictures, clock
        self._turn = pictures.turn

    async def entries(self, provider: str | None = None) -> list[Account]:
        """Return every account that there is, by id; with *provider* (an id or alias) only its own."""
        picture = await self._pictures.take()
        accounts = sorted(picture.accounts().values(), key=lambda account: account.id)
        if provider is None:
            return accounts
        named = configurable(provider, picture)
        return [account for account in accounts if account.provider == (named.id if named is not None else provider)]

    async def find(self, connection_id: str) -> Account:
        """Return the account. Raises NotFound."""
        return _found(connection_id, await self._pictures.take())

    async def create(self, raw: Mapping[str, object]) -> Written:
        """Store a new connection; a built-in provider is configured by it. Raises ValidationFailed, Conflict."""
        async with self._turn:
            picture = await self._pictures.take()
            given = {key: value for key, value in raw.items() if key not in {"id", "provider", *READ_ONLY}}
            report = Report()
            provider = _provider(raw.get("provider"), picture, report)
            account = read_account(given, "", provider, report)
            if account is None or provider is None:
                raise refused("connection", report.problems)
            if raw.get("id") not in (None, account.id):
                raise refused("connection", [("id", f"is made of provider and name: {account.id}")])
            self._refuse_taken(account, provider, picture)
            return await self._connections.add(account), self._oddities(account, provider)

    async def replace(self, connection_id: str, raw: Mapping[str, object], expected_version: int | None) -> Written:
        """Store *raw* in place of the connection; a key that is not given stays.

        Raises NotFound, Conflict, ValidationFailed, PreconditionFailed when *expected_version* is not stored.
        """
        async with self._turn:
            picture = await self._pictures.take()
            before = self._ours(connection_id, picture)
            return await self._put(before, {"name": before.name}, raw, picture, expected_version)

    async def change(self, connection_id: str, raw: Mapping[str, object], expected_version: int | None) -> Written:
        """Store the connection with the fields of *raw* changed. Raises as `replace`."""

        async def change() -> Written:
            picture = await self._pictures.take()
            before = self._ours(connection_id, picture)
            version = before.version if expected_version is None else expected_version
            return await self._put(before, written_fields(before), raw, picture, version)

        async with self._turn:
            return await rewritten(change, expected_version)

    async def remove(self, connection_id: str, expected_version: int | None) -> Account:
        """Remove the connection and return what it was. Raises NotFound, PreconditionFailed, Conflict."""
        async with self._turn:
            account = self._ours(connection_id, await self._pictures.take())
            if expected_version not in {None, account.version}:
                raise PreconditionFailed(f"the connection is at version {account.version}, not {expected_version}")
            await self._connections.remove(account.id)
            return account

    async def _put(
        self,
        before: Account,
        kept: Mapping[str, object],
        raw: Mapping[str, object],
        picture: Picture,
        expected_version: int | None,
    ) -> Written:
        given = {key: value for key, value in raw.items() if key not in READ_ONLY}
        said = {"id": before.id, "provider": before.provider, "name": before.name}
        asked = {key: given.pop(key, None) for key in FIXED}
        moved = [(key, "cannot be changed") for key, value in asked.items() if value is not None and value != said[key]]
        if moved:
            raise refused("connection", moved)
        provider, report = picture.providers.get(before.provider), Report()
        account = read_account({**kept, **given}, "", provider, report, before=before)
        if account is None:
            raise refused("connection", report.problems)
        stored = await self._connections.replace(account, expected_version=expected_version)
        return stored, self._oddities(stored, provider)

    def _ours(self, connection_id: str, picture: Picture) -> Account:
        account = _found(connection_id, picture)
        if account.origin is not Origin.DATABASE:
            raise self._fixed(account, picture)
        return account

    def _fixed(self, account: Account, picture: Picture) -> Conflict:
        return self._pictures.owned(f"the account {account.id}", account.origin, picture.providers[account.provider])

    def _refuse_taken(self, account: Account, provider: Provider, picture: Picture) -> None:
        if provider.id not in picture.providers:
            picture.refuse_clash(provider.id, {provider.id: "provider"})
        same = naming.same_name(account.name)
        for other in picture.accounts().values():
            if other.provider != account.provider or naming.same_name(other.name) != same:
                continue
            if other.origin is not Origin.DATABASE:
                raise self._fixed(other, picture)
            raise Conflict(f"{other.provider} has a connection {other.name!r}", param="name")

    def _oddities(self, account: Account, provider: Provider | None) -> list[str]:
        found = []
        if account.token_expires_at is not None and account.token_expires_at <= self._clock.now():
            found.append("the token has expired: no request is sent with it")
        if provider is None:
            found.append(f"there is no provider {account.provider}: it is not used")
        elif provider.keyless and account.api_key is not None:
            found.append(f"{provider.id} takes no credential: the api_key is kept, and not sent")
        elif not provider.keyless and account.api_key is None:
            found.append("it has no api_key: it is not used until it gets one")
        return found


def read_account(
    raw: Mapping[str, object],
    place: str,
    provider: Provider | None,
    report: Report,
    *,
    before: Account | None = None,
) -> Account | None:
    """Return the account of *provider* that *raw* at *place* describes; None when *report* says what is wrong.

    The key of *before* stays when *raw* has none, and goes when it is null. A new account needs one, if its provider
    does.
    """
    entry = read_connection(raw, place, report)
    owner = before.provider if before is not None else provider.id if provider is not None else ""
    needed = before is None and provider is not None and not provider.keyless
    if needed and raw.get("api_key") is None:
        report.wrong(below(place, "api_key"), "is required")
        return None
    if entry is None:
        return None
    kept = before.api_key if before is not None and "api_key" not in raw else None
    return Account(
        id=before.id if before is not None else account_id(owner, entry.name),
        provider=owner,
        name=entry.name,
        api_key=entry.api_key.literal if entry.api_key is not None else kept,
        models=entry.models,
        default_model=entry.default_model,
        tier=entry.tier,
        priority=entry.priority,
        quota=entry.quota,
        quota_reset_interval_s=entry.quota_reset_interval_s,
        max_inflight=entry.max_inflight,
        token_expires_at=entry.token_expires_at,
        active=entry.active,
        created_at=before.created_at if before is not None else 0.0,
        origin=Origin.DATABASE,
    )


def written_fields(account: Account) -> dict[str, object]:
    """Return *account* in the form that `read_account` takes, without its key."""
    return {
        "name": account.name,
        "models": list(account.models),
        "default_model": account.default_model,
        "tier": account.tier,
        "priority": account.priority,
        "quota": None if account.quota is None else dict(account.quota),
        "quota_reset_interval_s": account.quota_reset_interval_s,
        "max_inflight": account.max_inflight,
        "token_expires_at": account.token_expires_at,
        "active": account.active,
    }


def as_written(account: Account) -> dict[str, object]:
    """Return *account* as an answer tells it: what was written, and that there is a key, but nothing of the key."""
    return {
        "id": account.id,
        "provider": account.provider,
        **written_fields(account),
        "has_api_key": account.api_key is not None,
        "origin": account.origin.value,
        "read_only": account.origin is not Origin.DATABASE,
        "version": account.version,
        "created_at": account.created_at,
    }


def _provider(name: object, picture: Picture, report: Report) -> Provider | None:
    if name is None:
        report.wrong("provider", "is required")
        return None
    found = configurable(name, picture) if isinstance(name, str) else None
    if found is None:
        known = "configured or built in; POST /api/providers first"
        report.wrong("provider", f"{shown(str(name))} names no provider that is {known}")
    return found


def _found(connection_id: str, picture: Picture) -> Account:
    account = picture.accounts().get(connection_id)
    if account is None:
        raise NotFound(f"there is no connection '{shown(connection_id)}'")
    return account
