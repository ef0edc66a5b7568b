"""Combos in two tables (combo, member), read and written as one value. What a chain means is not known here."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from types import MappingProxyType

from sqlalchemy import Row, delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from troyproxy.catalog.combos import Combo, Member
from troyproxy.catalog.providers import Origin
from troyproxy.errors import Conflict, NotFound, PreconditionFailed
from troyproxy.ports import Clock
from troyproxy.store.database import Database
from troyproxy.store.encoding import fold, plain
from troyproxy.store.tables import COMBO_MEMBERS, COMBOS

_TAKEN = "a combo with this name or id exists"


class SqlCombos:
    """`ports.ComboRepository`. Every method raises StoreUnavailable too."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def list(self) -> list[Combo]:
        """Return every combo with its members in order, oldest first."""
        members: defaultdict[str, list[Member]] = defaultdict(list)
        async with self._database.read() as connection:
            combos = (await connection.execute(select(COMBOS).order_by(COMBOS.c.created_at, COMBOS.c.id))).all()
            for row in await connection.execute(select(COMBO_MEMBERS).order_by(COMBO_MEMBERS.c.position)):
                members[row.combo_id].append(Member(row.model, row.combo, row.account, row.weight))
        return [_combo(row, tuple(members[row.id])) for row in combos]

    async def add(self, combo: Combo) -> Combo:
        """Store *combo* as version 1 and return it as stored. Raises Conflict (names and ids share one namespace)."""
        stored = replace(combo, version=1, created_at=combo.created_at or self._clock.now(), origin=Origin.DATABASE)
        async with self._database.change(_TAKEN) as connection:
            await _refuse_taken(connection, stored)
            await connection.execute(insert(COMBOS), {"id": stored.id, "created_at": stored.created_at, **_row(stored)})
            await _insert_members(connection, stored)
        return stored

    async def replace(self, combo: Combo, *, expected_version: int | None = None) -> Combo:
        """Store *combo* over the one with its id and return it as stored, one version later.

        Raises NotFound, Conflict for a name that is taken, PreconditionFailed when *expected_version* is not stored.
        """
        async with self._database.change(_TAKEN) as connection:
            found = await connection.execute(select(COMBOS).where(COMBOS.c.id == combo.id).with_for_update())
            before = found.one_or_none()
            if before is None:
                raise NotFound(f"there is no combo with the id {combo.id!r}")
            if expected_version not in {None, before.version}:
                raise PreconditionFailed(f"the combo is at version {before.version}, not {expected_version}")
            stored = replace(combo, version=before.version + 1, created_at=before.created_at, origin=Origin.DATABASE)
            await _refuse_taken(connection, stored)
            await connection.execute(update(COMBOS).where(COMBOS.c.id == stored.id), _row(stored))
            await connection.execute(delete(COMBO_MEMBERS).where(COMBO_MEMBERS.c.combo_id == stored.id))
            await _insert_members(connection, stored)
        return stored

    async def remove(self, combo_id: str) -> None:
        """Remove the combo and its members. Raises NotFound."""
        async with self._database.change(_TAKEN) as connection:
            if (await connection.execute(delete(COMBOS).where(COMBOS.c.id == combo_id))).rowcount == 0:
                raise NotFound(f"there is no combo with the id {combo_id!r}")


async def _refuse_taken(connection: AsyncConnection, combo: Combo) -> None:
    """Raise Conflict when another combo is called by the id or name of *combo*, in any case."""
    ours = {combo.id, fold(combo.id), fold(combo.name)}
    clash = or_(COMBOS.c.id.in_(ours), COMBOS.c.name_folded.in_(ours))
    if (await connection.execute(select(COMBOS.c.id).where(clash, COMBOS.c.id != combo.id).limit(1))).first():
        raise Conflict(_TAKEN)


async def _insert_members(connection: AsyncConnection, combo: Combo) -> None:
    rows = [
        {
            "combo_id": combo.id,
            "position": position,
            "model": member.model,
            "combo": member.combo,
            "account": member.account,
            "weight": member.weight,
        }
        for position, member in enumerate(combo.members)
    ]
    if rows:
        await connection.execute(insert(COMBO_MEMBERS), rows)


def _row(combo: Combo) -> dict[str, object]:
    """Return the columns that an update may change."""
    return {
        "name": combo.name,
        "name_folded": fold(combo.name),
        "strategy": combo.strategy,
        "config": plain(combo.config),
        "version": combo.version,
    }


def _combo(row: Row[tuple[object, ...]], members: tuple[Member, ...]) -> Combo:
    return Combo(
        id=row.id,
        name=row.name,
        strategy=row.strategy,
        members=members,
        config=MappingProxyType(row.config),
        origin=Origin.DATABASE,
        version=row.version,
        created_at=row.created_at,
    )
