"""Fakes of the seams in `troyproxy/ports.py`, in the order of that page. They touch nothing outside."""

from __future__ import annotations

import asyncio
import heapq
import itertools


class FakeClock:
    """Time that only the test moves.

    `sleep` moves it by itself and returns at once, which suits code that waits and goes on. With ``manual=True`` a
    sleeper waits until `advance` has moved the time past its deadline, which suits code that races a wait against
    something else.
    """

    def __init__(self, now: float = 1_800_000_000.0, *, monotonic: float = 1_000.0, manual: bool = False) -> None:
        self._now = now
        self._monotonic = monotonic
        self._manual = manual
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []
        self.slept: list[float] = []

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if not self._manual:
            self.move(seconds)
            await asyncio.sleep(0)
            return
        due = asyncio.Event()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._order), due))
        await due.wait()

    def move(self, seconds: float) -> None:
        """Move the time without waking anybody."""
        self._now += seconds
        self._monotonic += seconds

    async def advance(self, seconds: float) -> None:
        """Move the time by *seconds*, waking each sleeper at its moment, earliest first."""
        until = self._monotonic + seconds
        while self._sleepers and self._sleepers[0][0] <= until:
            deadline, _, due = heapq.heappop(self._sleepers)
            self.move(max(0.0, deadline - self._monotonic))
            due.set()
            await settle()
        self.move(until - self._monotonic)
        await settle()


async def settle(rounds: int = 20) -> None:
    """Let every task that can run do so, without time passing."""
    for _ in range(rounds):
        await asyncio.sleep(0)
