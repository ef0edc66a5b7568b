"""Connections of our own to a SQLite file: the driver itself, kept open, for work that a thread does at once.

What is done once in a transaction is done with cold caches, in between the turns of a busy event loop: what an engine
does around it (check out, listen, begin, commit, check in) came to cost as much as a hundred rows. And a value that is
read twice a second, each step by way of another thread, came to cost most of what an idle gateway needs.
Errors are the driver's; `database.store_errors` knows them.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

from sqlalchemy import Engine, PoolProxiedConnection

Found = TypeVar("Found")


class Direct:
    """One connection, opened when it is first used. For one thread at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: PoolProxiedConnection | None = None

    def run(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Do *work* in one transaction. What fails is rolled back, and the next transaction connects anew."""
        self._use(lambda driver: _in_transaction(driver, work))

    def value(self, query: str) -> object:
        """Return the first value that *query* finds, as things stand now."""
        rows = self._use(lambda driver: driver.execute(query).fetchall())
        if not rows:
            raise sqlite3.DatabaseError("there is no such row")
        return rows[0][0]

    def close(self) -> None:
        """Close the connection. What is used again connects anew."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None
        self._engine.dispose()

    def _use(self, work: Callable[[sqlite3.Connection], Found]) -> Found:
        kept = self._kept = self._kept or self._engine.raw_connection()
        done = False
        try:
            found = work(cast("sqlite3.Connection", kept.driver_connection))
            done = True
        finally:
            if not done:
                kept.invalidate()
                self._kept = None
        return found


class Aside:
    """A `Direct` with a thread of its own: what is done there keeps nobody waiting but who asked for it."""

    def __init__(self, engine: Engine) -> None:
        self._direct = Direct(engine)
        self._thread = _one_thread()

    async def run(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Do *work* as `Direct.run` does."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._direct.run, work)

    async def value(self, query: str) -> object:
        """Return what `Direct.value` does."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._direct.value, query)

    async def close(self) -> None:
        """Close the connection, and end the thread. What is used again begins anew."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._direct.close)
        self._thread.shutdown(wait=False)
        self._thread = _one_thread()


def _in_transaction(driver: sqlite3.Connection, work: Callable[[sqlite3.Connection], None]) -> None:
    driver.execute("BEGIN IMMEDIATE")
    work(driver)
    driver.execute("COMMIT")


def _one_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="troyproxy-store")
