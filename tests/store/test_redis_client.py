from __future__ import annotations

import asyncio
import time

import pytest

from troyproxy.store.redis_client import TICKS, patience

pytestmark = pytest.mark.anyio
LIMIT_S = 0.05


async def test_patience_ends() -> None:
    with pytest.raises(TimeoutError):
        async with patience(LIMIT_S):
            await asyncio.Event().wait()


async def test_who_is_in_time_is_left_in_peace() -> None:
    async with patience(LIMIT_S):
        pass
    await asyncio.sleep(2 * LIMIT_S)
    assert asyncio.current_task() is not None


async def test_a_stall_of_our_own_counts_as_one_tick() -> None:
    arrived = asyncio.Event()
    async with patience(LIMIT_S):
        asyncio.get_running_loop().call_later(LIMIT_S / TICKS / 2, arrived.set)
        time.sleep(2 * LIMIT_S)  # noqa: ASYNC251 -- the stall
        await arrived.wait()
    assert arrived.is_set()


async def test_a_cancellation_passes() -> None:
    async def patient() -> None:
        async with patience(60.0):
            await asyncio.Event().wait()

    task = asyncio.get_running_loop().create_task(patient())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
