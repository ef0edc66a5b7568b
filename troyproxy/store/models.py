"""Overrides of the catalogue, one JSON value per ``provider/model``."""

from __future__ import annotations

import msgspec
from sqlalchemy import delete, insert, select, update

from troyproxy.catalog.models import Model
from troyproxy.errors import ConfigError, NotFound
from troyproxy.store.database import Database
from troyproxy.store.encoding import plain
from troyproxy.store.tables import MODEL_OVERRIDES


class SqlModels:
    """`ports.ModelRepository`. Every method raises StoreUnavailable too."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self) -> dict[str, Model]:
        """Return every override by spec. Raises ConfigError, naming the spec, for a row that is no model."""
        async with self._database.read() as connection:
            rows = (await connection.execute(select(MODEL_OVERRIDES).order_by(MODEL_OVERRIDES.c.spec))).all()
        return {row.spec: _model(row.spec, row.model) for row in rows}

    async def put(self, spec: str, model: Model) -> None:
        """Store what is known of *spec*, over what was stored before."""
        row = {"spec": spec, "model": plain(model)}
        async with self._database.change("the override was stored by another at the same moment") as connection:
            changed = await connection.execute(update(MODEL_OVERRIDES).where(MODEL_OVERRIDES.c.spec == spec), row)
            if changed.rowcount == 0:
                await connection.execute(insert(MODEL_OVERRIDES), row)

    async def remove(self, spec: str) -> None:
        """Remove an override. Raises NotFound."""
        async with self._database.change("") as connection:
            gone = await connection.execute(delete(MODEL_OVERRIDES).where(MODEL_OVERRIDES.c.spec == spec))
            if gone.rowcount == 0:
                raise NotFound(f"there is no override of {spec!r}")


def _model(spec: str, stored: object) -> Model:
    try:
        return msgspec.convert(stored, Model)
    except msgspec.ValidationError as exc:
        raise ConfigError(f"the stored override of {spec!r} is no model: {exc}") from exc
