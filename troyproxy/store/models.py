"""Overrides of the catalogue, one JSON value per ``provider/model``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
from sqlalchemy import delete, insert, select, update

from troyproxy.catalog.models import Model, Override
from troyproxy.errors import ConfigError, NotFound, PreconditionFailed
from troyproxy.store.database import Database
from troyproxy.store.encoding import plain
from troyproxy.store.tables import MODEL_OVERRIDES


class SqlModels:
    """`ports.ModelRepository`. Every method raises StoreUnavailable too."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self) -> dict[str, Model]:
        """Return every override by spec. Raises as `entries`."""
        return {override.spec: override.model for override in await self.entries()}

    async def entries(self) -> Sequence[Override]:
        """Return every override, by spec. Raises ConfigError, naming the spec, for a row that is no model."""
        async with self._database.read() as connection:
            rows = (await connection.execute(select(MODEL_OVERRIDES).order_by(MODEL_OVERRIDES.c.spec))).all()
        return [Override(row.spec, _model(row.spec, row.model), row.version) for row in rows]

    async def add(self, override: Override) -> Override:
        """Store *override* as version 1 and return it as stored. Raises Conflict when there is one of its spec."""
        stored = replace(override, version=1)
        async with self._database.change(f"there is an override of {override.spec!r}") as connection:
            await connection.execute(insert(MODEL_OVERRIDES), _row(stored))
        return stored

    async def replace(self, override: Override, *, expected_version: int | None = None) -> Override:
        """Store *override* over the one of its spec and return it as stored, one version later.

        Raises NotFound, PreconditionFailed when *expected_version* is not stored.
        """
        mine = MODEL_OVERRIDES.c.spec == override.spec
        async with self._database.change("") as connection:
            wanted = select(MODEL_OVERRIDES.c.version).where(mine).with_for_update()
            before = (await connection.execute(wanted)).scalar_one_or_none()
            if before is None:
                raise _unknown(override.spec)
            if expected_version not in {None, before}:
                raise PreconditionFailed(f"the override is at version {before}, not {expected_version}")
            stored = replace(override, version=before + 1)
            await connection.execute(update(MODEL_OVERRIDES).where(mine), _row(stored))
        return stored

    async def remove(self, spec: str) -> None:
        """Remove an override. Raises NotFound."""
        async with self._database.change("") as connection:
            gone = await connection.execute(delete(MODEL_OVERRIDES).where(MODEL_OVERRIDES.c.spec == spec))
            if gone.rowcount == 0:
                raise _unknown(spec)


def _unknown(spec: str) -> NotFound:
    return NotFound(f"there is no override of {spec!r}")


def _row(override: Override) -> dict[str, object]:
    return {"spec": override.spec, "model": plain(override.model), "version": override.version}


def _model(spec: str, stored: object) -> Model:
    try:
        return msgspec.convert(stored, Model)
    except msgspec.ValidationError as exc:
        raise ConfigError(f"the stored override of {spec!r} is no model: {exc}") from exc
