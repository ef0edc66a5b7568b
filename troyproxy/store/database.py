"""The engine and its transactions, for SQLite and PostgreSQL. No table but the control row is known here.

Foreign exceptions stop here: what leaves is StoreUnavailable (the database cannot be used now), ValidationFailed (it
does not take a value), or Conflict where a repository names one. Messages never quote statements or parameters.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, event, make_url, update
from sqlalchemy import create_engine as create_direct_engine
from sqlalchemy.engine.url import URL
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from troyproxy.errors import ConfigError, Conflict, StoreUnavailable, ValidationFailed
from troyproxy.store.direct import Aside
from troyproxy.store.encoding import written_json
from troyproxy.store.lending import Lending
from troyproxy.store.tables import CONTROL

_DRIVERS: Final = {
    "sqlite": "sqlite+aiosqlite",
    "sqlite+aiosqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
    "postgresql+asyncpg": "postgresql+asyncpg",
}
WRITES: Final = {"troyproxy_writes": True}
"""Execution options of a transaction that will write."""
Doing = Connection | sqlite3.Connection
"""Where the statements of a transaction go: SQLAlchemy's connection, or for a SQLite file that of the driver itself."""
Work = Callable[[Doing], None]
"""What is done in a transaction, without waiting for anything else."""
_CONNECT_S: Final = 5.0
BUSY_MS: Final = 5000
"""How long SQLite waits for a lock that somebody else holds."""
_PRIMARY_CODE: Final = 0xFF  # the rest of a SQLite result code only details it
_STATEMENT_S: Final = 10.0


def parse_url(text: str) -> URL:
    """Return the SQLAlchemy URL that *text* means. Raises ConfigError, not quoting it: it may hold a password."""
    allowed = "sqlite+aiosqlite:///path/to/file.db or postgresql+asyncpg://user:password@host/name"
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as exc:
        raise ConfigError(f"TROY_DATABASE_URL is no database URL; allowed: {allowed}") from exc
    driver = _DRIVERS.get(url.drivername)
    if driver is None:
        raise ConfigError(f"TROY_DATABASE_URL names {url.drivername!r}; allowed: {allowed}")
    if driver == "sqlite+aiosqlite" and url.database in {None, "", ":memory:"}:
        raise ConfigError("TROY_DATABASE_URL must name a file: a database in memory is not shared by its connections")
    return url.set(drivername=driver)


def is_sqlite(url: URL) -> bool:
    """Whether *url* is a SQLite file."""
    return url.get_backend_name() == "sqlite"


def create_engine(url: URL, *, migrating: bool = False) -> AsyncEngine:
    """Return an engine for *url*; it connects when it is first used. Raises ConfigError when a driver is missing.

    *migrating*: connections are not kept, and foreign keys are off, as SQLite's table copies need it.
    """
    try:
        if is_sqlite(url):
            return _sqlite_engine(url, migrating=migrating)
        return _postgresql_engine(url, migrating=migrating)
    except (ImportError, NoSuchModuleError) as exc:
        raise ConfigError("the PostgreSQL driver is missing: pip install 'troyproxy[postgres]'") from exc


def _sqlite_engine(url: URL, *, migrating: bool) -> AsyncEngine:
    if url.database is not None and not url.database.startswith("file:"):
        Path(url.database).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if migrating:
        engine = create_async_engine(url, poolclass=NullPool, hide_parameters=True)
    else:
        engine = create_async_engine(url, hide_parameters=True, pool_timeout=_CONNECT_S)
    _set_up_sqlite(engine.sync_engine, foreign_keys="OFF" if migrating else "ON")
    return engine


def _direct_engine(url: URL) -> Engine:
    """Return an engine for a SQLite file that works without an event loop."""
    engine = create_direct_engine(url.set(drivername="sqlite"), hide_parameters=True, pool_size=1, max_overflow=0)
    _set_up_sqlite(engine, foreign_keys="ON")
    return engine


def _set_up_sqlite(engine: Engine, *, foreign_keys: str) -> None:
    def prepare(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself: we do, below
        cursor = connection.cursor()
        for pragma in (f"busy_timeout = {BUSY_MS}", "synchronous = NORMAL", f"foreign_keys = {foreign_keys}"):
            cursor.execute(f"PRAGMA {pragma}")
        # Two that switch a new file at once do not wait for each other: one is refused. The mode is the file's, so the
        # other's success counts for both, and a connection to come tries again.
        with suppress(sqlite3.OperationalError):
            cursor.execute("PRAGMA journal_mode = WAL")
        cursor.close()

    def begin(connection: Connection) -> None:
        # A transaction that reads first and writes later fails at once when another wrote in between, whatever the
        # busy timeout. One that writes says so at its start, and waits its turn.
        immediate = connection.get_execution_options().get("troyproxy_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", begin)


def _postgresql_engine(url: URL, *, migrating: bool) -> AsyncEngine:
    if migrating:
        return create_async_engine(url, poolclass=NullPool, hide_parameters=True, connect_args={"timeout": _CONNECT_S})
    return create_async_engine(
        url,
        hide_parameters=True,
        json_serializer=written_json,
        pool_pre_ping=True,
        pool_recycle=1800,
        pool_timeout=_CONNECT_S,
        connect_args={"timeout": _CONNECT_S, "command_timeout": _STATEMENT_S},
    )


@contextmanager
def store_errors() -> Iterator[None]:
    """Re-raise what drivers raise as our errors. IntegrityError passes: only its caller knows what it means."""
    try:
        yield
    except IntegrityError:
        raise
    except (SQLAlchemyError, sqlite3.Error, OSError, ValueError, OverflowError) as exc:
        if _is_about_a_value(exc):
            raise ValidationFailed("the database does not take one of the values") from exc
        raise StoreUnavailable("the database cannot be used at the moment") from exc


def _is_about_a_value(exc: Exception) -> bool:
    """Whether a statement failed by what it was given, not by the state of the database.

    The drivers disagree: SQLite's raises UnicodeEncodeError and OverflowError itself, asyncpg's a ValueError that comes
    wrapped, and PostgreSQL answers with an SQLSTATE of class 22 (data exception).
    """
    if isinstance(exc, DBAPIError):
        about_data = str(getattr(exc.orig, "sqlstate", None) or "").startswith("22")
        return isinstance(exc, DataError) or about_data or isinstance(exc.__cause__, ValueError | OverflowError)
    return isinstance(exc, ValueError | OverflowError | sqlite3.IntegrityError | sqlite3.DataError)


def is_busy(exc: StoreUnavailable) -> bool:
    """Whether a SQLite file could not be used because somebody else holds a lock on it."""
    cause: BaseException | None = exc
    while cause is not None:
        if getattr(cause, "sqlite_errorcode", 0) & _PRIMARY_CODE in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return True
        cause = cause.__cause__
    return False


class Database:
    """One database and the ways to use it."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self._engine = create_engine(url)
        self._writing = self._engine.execution_options(**WRITES)
        self._lending = Lending(self._engine)
        self._inserting = Aside(_direct_engine(url)) if is_sqlite(url) else None
        self._looking = Aside(_direct_engine(url)) if is_sqlite(url) else None

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """Open a connection to read from. Raises StoreUnavailable."""
        with store_errors():
            async with self._lending.lend(self._engine) as connection:
                yield connection

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """Open a transaction, committed at the end. Raises StoreUnavailable, ValidationFailed, IntegrityError."""
        with store_errors():
            async with self._lending.lend(self._writing) as connection, connection.begin():
                yield connection

    async def value(self, query: str) -> object:
        """Return the first value that *query*, plain SQL, finds: for what is read again and again.

        On SQLite a thread does all of it at once, as with `insert`. Raises StoreUnavailable, also when there is none.
        """
        if self._looking is not None:
            with store_errors():
                return await self._looking.value(query)
        async with self.read() as connection:
            return (await connection.exec_driver_sql(query)).scalar_one()

    async def insert(self, work: Work) -> None:
        """Run *work*, which does not wait for anything else, in one transaction. Raises as `write` does.

        On SQLite a thread does all of it at once. Through the event loop every step of a transaction would wait behind
        what the loop has to do, and under load the rows so long in memory, where a crash loses them.
        """
        if self._inserting is not None:
            with store_errors():
                await self._inserting.run(work)
            return
        async with self.write() as connection:
            await connection.run_sync(work)

    @asynccontextmanager
    async def change(self, taken: str) -> AsyncIterator[AsyncConnection]:
        """Open a transaction on configuration: it also bumps the control revision. Raises Conflict(*taken*) too.

        The control row is touched last, so that two writers can never wait for each other.
        """
        try:
            async with self.write() as connection:
                yield connection
                await bump(connection)
        except IntegrityError as exc:
            raise Conflict(taken) from exc

    async def ping(self) -> None:
        """Raises StoreUnavailable when the database does not answer."""
        await self.value("SELECT 1")

    async def close(self) -> None:
        """Close every connection. What is used again opens anew."""
        for aside in (self._inserting, self._looking):
            if aside is not None:
                await aside.close()
        await self._lending.close()


async def bump(connection: AsyncConnection) -> int:
    """Raise the control revision by one and return it."""
    row = update(CONTROL).values(revision=CONTROL.c.revision + 1).returning(CONTROL.c.revision)
    return int((await connection.execute(row)).scalar_one())
