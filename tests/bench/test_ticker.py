"""The timer of the paced streams, on a loop whose time the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from tests.bench.ticker import Ticker


class Loop:
    """A loop with one timer at most."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[Callable[[], None]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, work: Callable[[], None]) -> None:
        assert when > self.now
        self.timers.append(work)

    def move(self, ms: int) -> None:
        for _ in range(ms):
            self.now += 0.001
            due, self.timers = self.timers, []
            for work in due:
                work()


class Steps:
    def __init__(self, loop: Loop, count: int) -> None:
        self.loop, self.left = loop, count
        self.at: list[int] = []

    def step(self) -> bool:
        self.at.append(round(self.loop.now * 1e3))
        self.left -= 1
        return self.left > 0


def test_each_member_steps_once_in_a_period_and_leaves_after_its_last() -> None:
    loop = Loop()
    ticker = Ticker(cast("asyncio.AbstractEventLoop", loop), 0.02)
    first, second = Steps(loop, 3), Steps(loop, 2)
    ticker.join(first)
    loop.move(7)
    ticker.join(second)
    loop.move(100)
    assert (first.at, second.at) == ([20, 40, 60], [27, 47])
    assert not loop.timers


def test_a_late_timer_steps_what_it_missed() -> None:
    loop = Loop()
    ticker, member = Ticker(cast("asyncio.AbstractEventLoop", loop), 0.02), Steps(loop, 9)
    ticker.join(member)
    loop.now = 0.05
    loop.move(1)
    assert len(member.at) == 2
