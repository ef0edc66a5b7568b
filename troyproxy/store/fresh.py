"""A new SQLite file, made from the models: what the migration scripts make of an empty one, without loading alembic.

A test holds both equal. Only a gateway's first start comes here, and only for SQLite.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, insert, inspect

from troyproxy.store.tables import CONTROL, METADATA

VERSIONS: Final = "alembic_version"


def is_empty_file(connection: Connection) -> bool:
    """Whether this is a SQLite file without any table."""
    return connection.dialect.name == "sqlite" and not inspect(connection).get_table_names()


def make(connection: Connection, revision: str) -> None:
    """Make every table, and note that they are those of *revision*."""
    METADATA.create_all(connection)
    connection.execute(insert(CONTROL), {"id": 1, "revision": 0})
    name = Column("version_num", String(32), nullable=False)
    versions = Table(VERSIONS, MetaData(), name, PrimaryKeyConstraint("version_num", name=f"{VERSIONS}_pkc"))
    versions.create(connection)
    connection.execute(insert(versions), {"version_num": revision})
