"""The database, one repository per aggregate. Every method raises StoreUnavailable too."""

from __future__ import annotations

from typing import Protocol

from troyproxy.accounting.records import UsageRow
from troyproxy.catalog.combos import Combo
from troyproxy.catalog.keys import Key
from troyproxy.catalog.models import Model
from troyproxy.catalog.providers import Account


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

    async def add(self, account: Account) -> Account:
        """Raises Conflict when the provider already has an account of this name."""

    async def remove(self, account_id: str) -> None:
        """Raises NotFound."""


class KeyRepository(Protocol):
    """Client keys, by digest."""

    async def list(self) -> list[Key]: ...

    async def find(self, digest: bytes) -> Key | None: ...

    async def add(self, key: Key) -> Key:
        """Raises Conflict when the name is taken."""

    async def revoke(self, key_id: str, *, at: float) -> Key:
        """Raises NotFound; revoking twice is fine."""


class ModelRepository(Protocol):
    """Overrides of the catalogue, by ``provider/model``."""

    async def list(self) -> dict[str, Model]: ...

    async def put(self, spec: str, model: Model) -> None: ...

    async def remove(self, spec: str) -> None:
        """Raises NotFound."""


class RequestRepository(Protocol):
    """Usage rows, read back."""

    async def find(self, request_id: str) -> UsageRow | None: ...

    async def recent(self, *, limit: int = 50) -> list[UsageRow]: ...
