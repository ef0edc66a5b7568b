"""The database, one repository per aggregate. Every method raises StoreUnavailable too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from troyproxy.accounting.pages import Page, Position, Wanted
from troyproxy.accounting.past import AccountSum, Past
from troyproxy.accounting.records import UsageRow
from troyproxy.catalog.combos import Combo
from troyproxy.catalog.keys import Key
from troyproxy.catalog.models import Model, Override
from troyproxy.catalog.providers import Account, StoredProvider


class ComboRepository(Protocol):
    """Combos and their members. Writers bump the control revision in the same transaction."""

    async def list(self) -> list[Combo]: ...

    async def add(self, combo: Combo) -> Combo:
        """Raises Conflict when the name (case-insensitively) or id is taken."""

    async def replace(self, combo: Combo, *, expected_version: int | None = None) -> Combo:
        """Raises NotFound, or PreconditionFailed when the stored version is another."""

    async def remove(self, combo_id: str) -> None:
        """Raises NotFound."""


class ConnectionRepository(Protocol):
    """Accounts of providers (connections). Secrets are encrypted at rest."""

    async def list(self) -> list[Account]: ...

    async def find(self, account_id: str) -> Account | None: ...

    async def add(self, account: Account) -> Account:
        """Raises Conflict when the provider already has an account of this name."""

    async def replace(self, account: Account, *, expected_version: int | None = None) -> Account:
        """Raises NotFound, Conflict, or PreconditionFailed when the stored version is another."""

    async def remove(self, account_id: str) -> None:
        """Raises NotFound."""


class ProviderRepository(Protocol):
    """Providers that were written through the API.

    *accounts* are stored in the same transaction, each over the one with its id. With *drop_keys* the other connections
    of the provider lose their keys there: they were given for another address, or another way to authenticate.
    """

    async def list(self) -> list[StoredProvider]: ...

    async def add(
        self, provider: StoredProvider, *, accounts: Sequence[Account] = (), drop_keys: bool = False
    ) -> StoredProvider:
        """Raises Conflict when the id is taken, or an account's name."""

    async def replace(
        self,
        provider: StoredProvider,
        *,
        expected_version: int | None = None,
        accounts: Sequence[Account] = (),
        drop_keys: bool = False,
    ) -> StoredProvider:
        """Raises NotFound, PreconditionFailed when the stored version is another, Conflict for an account's name."""

    async def remove(self, provider_id: str, *, cascade: bool = False) -> None:
        """Remove it, and with *cascade* its connections. Raises Conflict when it has some, NotFound without either."""


class KeyRepository(Protocol):
    """Client keys, by digest."""

    async def list(self) -> list[Key]: ...

    async def find(self, digest: bytes) -> Key | None: ...

    async def add(self, key: Key) -> Key:
        """Raises Conflict when the name is taken."""

    async def replace(self, key: Key, *, expected_version: int | None = None) -> Key:
        """Store name and settings, and no secret.

        Raises NotFound, Conflict (a name taken, a key revoked), PreconditionFailed when the stored version is another.
        """

    async def rotate(
        self, key_id: str, digest: bytes, *, old_until: float | None = None, expected_version: int | None = None
    ) -> Key:
        """Put *digest* in place of the key's; the old one works until *old_until*, for None no more.

        Raises as `replace`.
        """

    async def revoke(self, key_id: str, *, at: float) -> Key:
        """Raises NotFound; revoking twice is fine."""

    async def remove(self, key_id: str) -> None:
        """Raises NotFound."""


class ModelRepository(Protocol):
    """Overrides of the catalogue, by ``provider/model``."""

    async def list(self) -> dict[str, Model]: ...

    async def entries(self) -> Sequence[Override]:
        """Return every override with its version, by spec."""

    async def add(self, override: Override) -> Override:
        """Raises Conflict when there is one of this spec."""

    async def replace(self, override: Override, *, expected_version: int | None = None) -> Override:
        """Raises NotFound, or PreconditionFailed when the stored version is another."""

    async def remove(self, spec: str) -> None:
        """Raises NotFound."""


class RequestRepository(Protocol):
    """Usage rows, read back."""

    async def find(self, request_id: str) -> UsageRow | None: ...

    async def recent(self, *, limit: int = 50) -> list[UsageRow]: ...

    async def page(self, wanted: Wanted, *, before: Position | None = None, limit: int = 50) -> Page:
        """Return a page, newest first. It looks at a bounded number of rows, so it may be short and yet have an end."""

    async def following(self, after: Position, *, limit: int = 500) -> Sequence[UsageRow]:
        """Return the rows behind a place, oldest first; fewer than *limit* are the last ones."""

    async def attempts_since(self, at: float, *, limit: int) -> Past:
        """Return the attempts of the newest *limit* requests that arrived at *at* (unix seconds) or later.

        Where the client left before the answer's end, the last attempt's outcome is ``cancelled``.
        """

    async def served_between(self, since: float, until: float) -> list[AccountSum]:
        """Return what each account served of the requests that arrived from *since* on and before *until*."""
