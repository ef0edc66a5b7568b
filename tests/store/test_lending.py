from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import event, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from tests.fakes import settle
from troyproxy.errors import StoreUnavailable
from troyproxy.store.database import create_engine, parse_url, store_errors
from troyproxy.store.lending import Lending

pytestmark = pytest.mark.anyio


class Watched:
    """A lending of SQLite connections that knows every one it opened."""

    def __init__(self, path: Path) -> None:
        self.engine = create_engine(parse_url(f"sqlite:///{path}"))
        self.lending = Lending(self.engine)
        self.opened: list[DBAPIConnection] = []
        event.listen(self.engine.sync_engine, "connect", self._seen)

    def _seen(self, connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        self.opened.append(connection.driver_connection)

    @property
    def still_open(self) -> int:
        return sum(map(_is_open, self.opened))

    async def look(self) -> None:
        async with self.lending.lend(self.engine) as connection:
            await connection.execute(text("SELECT 1"))


def _is_open(driver: DBAPIConnection) -> bool:
    try:
        return driver.in_transaction in {True, False}
    except ValueError:  # aiosqlite: no active connection
        return False


@asynccontextmanager
async def closed_at_the_end(path: Path) -> AsyncIterator[Watched]:
    watched = Watched(path)
    yield watched
    await watched.lending.close()


async def test_a_connection_that_was_given_back_serves_the_next_one(tmp_path: Path) -> None:
    async with closed_at_the_end(tmp_path / "x.db") as watched:
        await watched.look()
        await watched.look()
        assert (len(watched.opened), watched.still_open) == (1, 1)


async def test_a_close_closes_the_idle_ones(tmp_path: Path) -> None:
    async with closed_at_the_end(tmp_path / "x.db") as watched:
        await watched.look()
    assert (len(watched.opened), watched.still_open) == (1, 0)


async def test_a_connection_that_is_out_at_the_close_is_closed_when_it_comes_back(tmp_path: Path) -> None:
    async with closed_at_the_end(tmp_path / "x.db") as watched:
        async with watched.lending.lend(watched.engine) as connection:
            await watched.lending.close()
            await connection.execute(text("SELECT 1"))
        assert (len(watched.opened), watched.still_open) == (1, 0)


async def test_what_is_used_after_a_close_opens_anew(tmp_path: Path) -> None:
    async with closed_at_the_end(tmp_path / "x.db") as watched:
        await watched.look()
        await watched.lending.close()
        await watched.look()
        assert (len(watched.opened), watched.still_open) == (2, 1)


@pytest.mark.parametrize("steps", range(12))
async def test_a_borrower_cancelled_at_any_moment_leaves_nothing_open(tmp_path: Path, steps: int) -> None:
    async with closed_at_the_end(tmp_path / "x.db") as watched:
        borrower = asyncio.get_running_loop().create_task(watched.look())
        for _ in range(steps):
            await settle(1)
        borrower.cancel()
        with suppress(asyncio.CancelledError):
            await borrower
    assert watched.still_open == 0


async def test_a_borrower_cancelled_while_it_is_opened_does_not_wait_for_it(tmp_path: Path) -> None:
    async with closed_at_the_end(tmp_path / "x.db") as watched:
        borrower = asyncio.get_running_loop().create_task(watched.look())
        await settle(1)
        borrower.cancel()
        with pytest.raises(asyncio.CancelledError):
            await borrower
        assert not watched.opened
    assert watched.still_open == 0


async def test_what_goes_wrong_while_it_is_opened_reaches_the_borrower() -> None:
    engine = create_engine(parse_url("postgresql://nobody@127.0.0.1:1/nothing"))
    lending = Lending(engine)
    with pytest.raises(StoreUnavailable), store_errors():
        async with lending.lend(engine):
            pass
    await lending.close()
