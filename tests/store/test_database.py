from __future__ import annotations

import asyncio
import sqlite3
import sys
from pathlib import Path

import pytest
from sqlalchemy import select, text

from tests.fakes import FakeClock
from troyproxy.errors import ConfigError, StoreUnavailable, TroyError, ValidationFailed
from troyproxy.store.database import Database, bump, parse_url, store_errors
from troyproxy.store.store import SqlStore
from troyproxy.store.tables import CONTROL


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        ("sqlite:///x.db", "sqlite+aiosqlite"),
        ("sqlite+aiosqlite:////abs/x.db", "sqlite+aiosqlite"),
        ("postgres://h/d", "postgresql+asyncpg"),
        ("postgresql://u:p@h:5433/d", "postgresql+asyncpg"),
        ("postgresql+asyncpg://h/d", "postgresql+asyncpg"),
    ],
)
def test_the_async_driver_is_filled_in(text: str, driver: str) -> None:
    assert parse_url(text).drivername == driver


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "mysql://u:hunter2@h/d", "postgresql://u:hunter2@h:port/d", "sqlite://", "sqlite:///:memory:"],
)
def test_other_urls_are_refused_without_their_password(text: str) -> None:
    with pytest.raises(ConfigError, match="TROY_DATABASE_URL") as caught:
        parse_url(text)
    assert "hunter2" not in str(caught.value)


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(ConfigError, match=r"troyproxy\[postgres\]"):
        Database(parse_url("postgresql://h/d"))


@pytest.mark.parametrize(
    ("raised", "becomes"),
    [
        (OSError("refused"), StoreUnavailable),
        (TimeoutError(), StoreUnavailable),
        (OverflowError("too large"), ValidationFailed),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogate"), ValidationFailed),
        (sqlite3.OperationalError("database is locked"), StoreUnavailable),
        (sqlite3.IntegrityError("NOT NULL constraint failed"), ValidationFailed),
    ],
)
def test_what_drivers_raise_becomes_ours(raised: Exception, becomes: type[TroyError]) -> None:
    with pytest.raises(becomes), store_errors():
        raise raised


def test_cancellation_passes() -> None:
    with pytest.raises(asyncio.CancelledError), store_errors():
        raise asyncio.CancelledError


@pytest.mark.anyio
async def test_sqlite_waits_for_locks_and_keeps_a_write_ahead_log(tmp_path: Path) -> None:
    database = Database(parse_url(f"sqlite:///{tmp_path}/x.db"))
    pragmas = ("journal_mode", "busy_timeout", "foreign_keys", "synchronous")
    async with database.read() as connection:
        found = [(await connection.execute(text(f"PRAGMA {pragma}"))).scalar_one() for pragma in pragmas]
    await database.close()
    assert found == ["wal", 5000, 1, 1]


@pytest.mark.anyio
async def test_transactions_that_read_and_then_write_take_turns(store: SqlStore) -> None:
    async def read_then_write() -> None:
        async with store._database.write() as connection:
            await connection.execute(select(CONTROL))
            await asyncio.sleep(0)
            await bump(connection)

    await asyncio.gather(*(read_then_write() for _ in range(8)))
    assert await store.control.revision() == 8


@pytest.mark.anyio
async def test_a_failed_transaction_leaves_nothing(store: SqlStore) -> None:
    async def fail() -> None:
        async with store._database.write() as connection:
            await bump(connection)
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert await store.control.revision() == 0


@pytest.mark.anyio
async def test_a_cancelled_transaction_leaves_nothing_and_no_lock(store: SqlStore) -> None:
    entered = asyncio.Event()

    async def hang() -> None:
        async with store._database.write() as connection:
            await bump(connection)
            entered.set()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(hang())
        await entered.wait()
        task.cancel()
    assert await store.control.bump() == 1


@pytest.mark.anyio
async def test_a_wrong_password_is_unavailable_and_not_shown(
    empty_postgres_url: str, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    nobody = empty_postgres_url.replace("postgres@", "nobody:hunter2@")
    database = Database(parse_url(nobody))
    with pytest.raises(StoreUnavailable) as caught:
        await database.ping()
    await database.close()
    assert "hunter2" not in str(caught.value)
