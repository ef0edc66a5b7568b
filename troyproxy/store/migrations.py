"""Migrations, in a thread with an event loop of its own: alembic, which runs them (`store.scripts`), is synchronous.

Alembic is loaded only when it has something to do. A database that is where this program wants it costs one query, and
a new SQLite file is made from the models (`store.fresh`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Final, TypeVar

from sqlalchemy import Connection, inspect
from sqlalchemy.engine.url import URL

from troyproxy.errors import ConfigError
from troyproxy.store import fresh
from troyproxy.store.database import WRITES, create_engine, parse_url, store_errors

T = TypeVar("T")

NEWEST: Final = "0005"
"""The revision of the newest script; a test holds them equal."""
_ADVISORY_LOCK: Final = 31337  # any number, as long as every upgrade takes the same


@dataclass(frozen=True, slots=True)
class SchemaState:
    """What `check` found: the two revisions, and where the tables differ from the models (empty = nowhere)."""

    current: str | None
    head: str
    differences: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the program and the database fit together."""
        return self.current == self.head and not self.differences


async def upgrade(url: str, revision: str = "head") -> str | None:
    """Bring the database to *revision* and return where it is now. Raises ConfigError, StoreUnavailable."""
    return await _off_the_loop(parse_url(url), lambda connection: _upgrade(connection, revision))


async def downgrade(url: str, revision: str = "-1") -> str | None:
    """Take the database back to *revision* (``base`` removes every table) and return where it is now."""
    return await _off_the_loop(parse_url(url), lambda connection: _downgrade(connection, revision))


async def current(url: str) -> str | None:
    """Return the database's revision; None when it was never migrated. Raises StoreUnavailable."""
    return await _off_the_loop(parse_url(url), revision_of)


async def check(url: str) -> SchemaState:
    """Compare the database with this program, without changing it. Raises StoreUnavailable."""
    return await _off_the_loop(parse_url(url), _check)


def head() -> str:
    """Return the newest revision this program knows."""
    return NEWEST


def revision_of(connection: Connection) -> str | None:
    """Return the revision that a database is at; None when it was never migrated."""
    if not inspect(connection).has_table(fresh.VERSIONS):
        return None
    found: str | None = connection.exec_driver_sql(f"SELECT version_num FROM {fresh.VERSIONS}").scalar()  # noqa: S608
    return found


def require_head(found: str | None) -> None:
    """Raise ConfigError with the remedy when a database at revision *found* does not fit this program."""
    if found == NEWEST:
        return
    if found is None or found in _scripts().revisions():
        raise ConfigError(f"the database is at revision {found or 'none'}, not {NEWEST}: run `troyproxy db upgrade`")
    raise ConfigError(f"the database is at revision {found}, which a newer troyproxy made: install that version")


def _scripts() -> ModuleType:
    from troyproxy.store import scripts  # noqa: PLC0415 -- it loads alembic

    return scripts


def _upgrade(connection: Connection, revision: str) -> str | None:
    _take_turns(connection)
    newest = revision in {"head", NEWEST}
    if newest and fresh.is_empty_file(connection):
        fresh.make(connection, NEWEST)
    elif not newest or revision_of(connection) != NEWEST:
        _scripts().upgrade(connection, revision)
    return revision_of(connection)


def _downgrade(connection: Connection, revision: str) -> str | None:
    _take_turns(connection)
    _scripts().downgrade(connection, revision)
    return revision_of(connection)


def _take_turns(connection: Connection) -> None:
    """Wait for other processes that migrate; SQLite's transactions do that by themselves."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")


def _check(connection: Connection) -> SchemaState:
    return SchemaState(revision_of(connection), NEWEST, _scripts().differences(connection))


async def _off_the_loop(url: URL, work: Callable[[Connection], T]) -> T:
    return await asyncio.to_thread(lambda: asyncio.run(_connected(url, work)))


async def _connected(url: URL, work: Callable[[Connection], T]) -> T:
    engine = create_engine(url, migrating=True)
    try:
        with store_errors():
            async with engine.execution_options(**WRITES).begin() as connection:
                return await connection.run_sync(work)
    finally:
        await engine.dispose()
