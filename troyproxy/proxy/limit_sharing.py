"""Counts limits together with other instances, over a `ports.SharedLimits`; what it cannot ask it leaves to the caller.

    requests ──► a queue ──► one trip after another, each with all that waits, in order ──► answers
                                  │
                                  └─ slow or down: everybody who waits is told at once to decide alone, and so is
                                     everybody who comes, without waiting, until a new connection stands

So a request waits for two trips at most: the one that is under way and its own. Order matters: what a request has spent
is on its way before the next one asks.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import Final

from troyproxy.errors import StoreUnavailable
from troyproxy.ports import Admission, Clock, Correction, Counted, SharedLimits

LOGGER: Final = logging.getLogger("troyproxy.limits")
PER_TRIP: Final = 500

Answer = asyncio.Future[Counted | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Waits, in seconds."""

    retry_s: float = 0.1
    """First wait after a failure; doubled up to *retry_max_s* until a trip succeeds."""
    retry_max_s: float = 2.0
    idle_s: float = 2.0
    """After so long without an order an empty trip is made: a dead connection is found before a request needs it."""
    join_s: float = 2.0
    """How long a start may wait for the connection."""


class LimitSharing:
    """Owns the connection from `join` to the end of `follow`, its background work."""

    def __init__(self, shared: SharedLimits, *, clock: Clock, pace: Pace | None = None) -> None:
        self._shared, self._clock, self._pace = shared, clock, pace or Pace()
        self._queue: deque[tuple[Admission | Correction, Answer | None]] = deque()
        self._wake = asyncio.Event()
        self._failing = False
        self._wait_s = self._pace.retry_s
        self.up = False
        """Whether instances count together now."""
        self.alone = 0
        """Requests that this process decided on alone because the others could not be asked."""

    async def ask(self, order: Admission) -> Counted | None:
        """Return what all instances together say, or None: decide alone."""
        counted = await self._queued(order) if self.up else None
        self.alone += counted is None
        return counted

    def tell(self, order: Correction) -> None:
        """Pass on what a request used; never waits. While it cannot be told it is dropped: `mine` catches up later."""
        if self.up:
            self._put(order, None)

    async def _queued(self, order: Admission) -> Counted | None:
        answer: Answer = asyncio.get_running_loop().create_future()
        self._put(order, answer)
        return await answer

    def _put(self, order: Admission | Correction, answer: Answer | None) -> None:
        self._queue.append((order, answer))
        self._wake.set()

    async def join(self) -> None:
        """Connect before the first request. What cannot be reached stops no start."""
        self._wake = asyncio.Event()  # a host may start us again on another loop
        try:
            async with asyncio.timeout(self._pace.join_s):
                await self._open()
        except (StoreUnavailable, TimeoutError) as exc:
            self._went_down(exc)

    async def follow(self) -> None:
        """Make trips until cancelled; after a failure connect anew."""
        try:
            while True:
                try:
                    if not self.up:
                        await self._open()
                    await self._trips()
                except StoreUnavailable as exc:
                    self._went_down(exc)
                await self._clock.sleep(self._wait_s)
                self._wait_s = min(2 * self._wait_s, self._pace.retry_max_s)
        finally:
            self._leave_alone()
            await self._shared.close()

    async def _open(self) -> None:
        await self._shared.open()
        self.up = True

    async def _trips(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._pace.idle_s):
                    await self._wake.wait()
            except TimeoutError:
                await self._trip([])
            self._wake.clear()
            while self._queue:
                await self._trip(self._batch())

    def _batch(self) -> list[tuple[Admission | Correction, Answer | None]]:
        """Take what waits; nobody waits any more for an answer that was cancelled."""
        taken = [self._queue.popleft() for _ in range(min(len(self._queue), PER_TRIP))]
        return [(order, answer) for order, answer in taken if answer is None or not answer.done()]

    async def _trip(self, batch: list[tuple[Admission | Correction, Answer | None]]) -> None:
        counted: list[Counted | None] = [None] * len(batch)
        try:
            counted[:] = await self._shared.carry([order for order, _ in batch])
            self._came_back()
        finally:
            for (order, answer), found in zip(batch, counted, strict=True):
                self._hand_over(order, answer, found)

    def _hand_over(self, order: Admission | Correction, answer: Answer | None, found: Counted | None) -> None:
        if answer is None:
            return
        if not answer.done():
            answer.set_result(found)
        elif found is not None and found.refused is None:  # charged to a request that has gone meanwhile
            self.tell(Correction(order.key_id, order.limits, order.mine, order.tokens))

    def _came_back(self) -> None:
        if self._failing:
            LOGGER.warning("the limits of keys are counted together again")
        self._failing, self._wait_s = False, self._pace.retry_s

    def _went_down(self, exc: BaseException) -> None:
        if not self._failing:  # once for each outage
            reason = str(exc) or "the shared state does not answer"
            LOGGER.warning("%s; each instance counts the limits of keys by itself", reason)
        self._failing = True
        self._leave_alone()

    def _leave_alone(self) -> None:
        """From now on everybody decides alone, those who wait included."""
        self.up = False
        waiting, self._queue = self._queue, deque()
        for _, answer in waiting:
            if answer is not None and not answer.done():
                answer.set_result(None)
