"""Waiting for the writer, in real time but never longer than a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from troyproxy.store.store import SqlStore


async def until(condition: Callable[[], bool]) -> None:
    """Return as soon as *condition* holds; fail after 30 seconds."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - nothing tells when a database has answered
            await asyncio.sleep(0.002)


async def until_written(store: SqlStore) -> None:
    """Return when the writer has nothing left."""
    await until(lambda: not any(store.queue_depths.values()))
