"""The writer's own connection to a SQLite file: the driver itself, kept open, for work that a thread does at once.

What is done once in a transaction is done with cold caches, in between the turns of a busy event loop: what an engine
does around it (check out, listen, begin, commit, check in) came to cost as much as a hundred rows.
Errors are the driver's; `database.store_errors` knows them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import cast

from sqlalchemy import Engine, PoolProxiedConnection


class Direct:
    """One connection, opened when it is first used. For one thread at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: PoolProxiedConnection | None = None

    def run(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Do *work* in one transaction. What fails is rolled back, and the next transaction connects anew."""
        if self._kept is None:
            self._kept = self._engine.raw_connection()
        driver = cast("sqlite3.Connection", self._kept.driver_connection)
        done = False
        try:
            driver.execute("BEGIN IMMEDIATE")
            work(driver)
            driver.execute("COMMIT")
            done = True
        finally:
            if not done:
                self._kept.invalidate()
                self._kept = None

    def close(self) -> None:
        """Close the connection. What is used again connects anew."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None
        self._engine.dispose()
