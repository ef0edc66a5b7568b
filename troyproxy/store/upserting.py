"""INSERT as the database at hand spells what follows a conflict. PostgreSQL's is loaded only where it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy import Table
from sqlalchemy.dialects import sqlite

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

Insert: TypeAlias = "sqlite.Insert | postgresql.Insert"


def insert(dialect: str, table: Table) -> Insert:
    """Return an INSERT into *table*, for the database that *dialect* names."""
    if dialect == "sqlite":
        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415 -- it loads every driver's part

    return postgresql.insert(table)
