"""One timer for all streams of a pace: each has a slot of a wheel, and a slot is due once in a period.

A timer for each event of each stream would cost the upstream more than the events do.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

SLOT_S: Final = 0.001


class Paced(Protocol):
    """Something that takes a step in each period."""

    def step(self) -> bool:
        """Take the next one; False when it was the last."""
        ...


class Ticker:
    """Steps each of its members every *period_s* seconds, some milliseconds at least. Idle, it has no timer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, period_s: float) -> None:
        self._loop = loop
        self._slots: list[list[Paced]] = [[] for _ in range(round(period_s / SLOT_S))]
        self._members = 0
        self._at = 0
        self._next = 0.0

    def join(self, member: Paced) -> None:
        """Step *member* from one period later on."""
        if not self._members:
            self._next = self._loop.time() + SLOT_S
            self._loop.call_at(self._next, self._tick)
        self._members += 1
        self._slots[self._at - 1].append(member)

    def _tick(self) -> None:
        """Step the slots that are due: more than one when the process was late."""
        now = self._loop.time()
        while self._next <= now:
            self._step()
            self._next += SLOT_S
        if self._members:
            self._loop.call_at(self._next, self._tick)

    def _step(self) -> None:
        slot = self._slots[self._at]
        if slot:
            self._slots[self._at] = kept = [member for member in slot if member.step()]
            self._members -= len(slot) - len(kept)
        self._at = (self._at + 1) % len(self._slots)
