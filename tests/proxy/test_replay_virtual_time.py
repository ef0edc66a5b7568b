from __future__ import annotations

import asyncio

import pytest

from troyproxy.proxy.replay.virtual_time import VirtualClock, VirtualLoop


def test_an_hour_passes_at_once_and_exactly() -> None:
    async def work() -> float:
        clock = VirtualClock(1_800_000_000.0)
        await clock.sleep(3600.0)
        return clock.now()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(work()) == 1_800_003_600.0


def test_settling_waits_for_everything_that_happens_now_and_takes_no_time() -> None:
    seen: list[str] = []

    async def other() -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        seen.append("now")
        await asyncio.sleep(1.0)
        seen.append("later")

    async def work() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        async with asyncio.TaskGroup() as group:
            group.create_task(other())
            await loop.settle()
            assert (seen, loop.time()) == (["now"], 0.0)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(work())
    assert seen == ["now", "later"]


def test_waiting_for_nothing_is_an_error_and_no_hang() -> None:
    async def work() -> None:
        await asyncio.get_running_loop().create_future()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner, pytest.raises(RuntimeError, match="nothing will ever"):
        runner.run(work())


def test_the_clock_stands_at_its_start_before_the_loop_runs() -> None:
    assert VirtualClock(5.0).now() == 5.0


def test_a_settling_that_was_given_up_wakes_nobody() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await loop.settle()
        await asyncio.sleep(0.5)
        assert loop.time() == 0.5

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(work())
