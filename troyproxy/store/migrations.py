"""Migrations through alembic's API, in a thread with an event loop of its own: alembic is synchronous.

The scripts are data beside the code: ``troyproxy/_migrations`` in an installed package, ``alembic/`` in a checkout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection
from sqlalchemy.engine.url import URL

from troyproxy.errors import ConfigError
from troyproxy.store.database import WRITES, create_engine, parse_url, store_errors
from troyproxy.store.tables import METADATA

T = TypeVar("T")

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
    return _scripts().get_current_head() or ""


def revision_of(connection: Connection) -> str | None:
    """Return the revision that a database is at."""
    return MigrationContext.configure(connection).get_current_revision()


def require_head(found: str | None) -> None:
    """Raise ConfigError with the remedy when a database at revision *found* does not fit this program."""
    newest = head()
    if found == newest:
        return
    if found is None or found in {script.revision for script in _scripts().walk_revisions()}:
        raise ConfigError(f"the database is at revision {found or 'none'}, not {newest}: run `troyproxy db upgrade`")
    raise ConfigError(f"the database is at revision {found}, which a newer troyproxy made: install that version")


def script_folder() -> Path:
    """Return the folder with ``env.py``. Raises ConfigError when the installation lacks it."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_migrations", package.parent / "alembic"):
        if (folder / "env.py").is_file():
            return folder
    raise ConfigError("the migration scripts are missing: install troyproxy again")


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(script_folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _upgrade(connection: Connection, revision: str) -> str | None:
    return _run(connection, lambda config: command.upgrade(config, revision))


def _downgrade(connection: Connection, revision: str) -> str | None:
    return _run(connection, lambda config: command.downgrade(config, revision))


def _run(connection: Connection, work: Callable[[Config], None]) -> str | None:
    """Run one alembic command inside the transaction of *connection*; two processes take turns."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")
    config = _config()
    config.attributes["connection"] = connection
    try:
        work(config)
    except CommandError as exc:
        raise ConfigError(f"cannot migrate the database: {exc}") from exc
    return revision_of(connection)


def _check(connection: Connection) -> SchemaState:
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    differences = tuple(str(difference) for difference in compare_metadata(context, METADATA))
    return SchemaState(revision_of(connection), head(), differences)


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
