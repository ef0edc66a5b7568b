"""Tells other instances of the attempts of this one, and takes in theirs, once a second, over `ports.SharedAttempts`.

So statistics and own quota counts are those of all instances, about a second late. While the others cannot be reached
each goes by its own; what ended meanwhile is not told later, as it may have been heard already.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

from troyproxy.accounting.finished import Finished
from troyproxy.errors import StoreUnavailable
from troyproxy.ports import Clock, SharedAttempts
from troyproxy.proxy.measuring import Measuring

LOGGER: Final = logging.getLogger("troyproxy.shared")
EVERY_S: Final = 1.0
BOUND: Final = 10_000
"""Attempts that wait to be told; the oldest go first."""
JOIN_S: Final = 2.0
"""How long a start may wait for the connection."""


class MeasureSharing:
    """Owns the connection from `join` to the end of `follow`, its background work."""

    def __init__(self, shared: SharedAttempts, measuring: Measuring, clock: Clock) -> None:
        self._shared, self._measuring, self._clock = shared, measuring, clock
        self._waiting: deque[Finished] = deque(maxlen=BOUND)
        self._failing = False
        self.up = False
        """Whether the others can be reached now."""
        measuring.tell(self._waiting.append)

    async def join(self) -> None:
        """Connect before the first request: from now on the others are heard. What cannot be stops no start."""
        try:
            async with asyncio.timeout(JOIN_S):
                await self._open()
        except (StoreUnavailable, TimeoutError) as exc:
            self._went_down(exc)

    async def follow(self) -> None:
        """Exchange until cancelled; after a failure connect anew."""
        try:
            while True:
                await self._clock.sleep(EVERY_S)
                try:
                    await self._turn()
                except StoreUnavailable as exc:
                    self._went_down(exc)
        finally:
            self.up = False
            await self._shared.close()

    async def _open(self) -> None:
        await self._shared.open()
        self.up = True

    async def _turn(self) -> None:
        mine = tuple(self._waiting)
        self._waiting.clear()
        if not self.up:
            await self._open()
        self._measuring.learn(await self._shared.exchange(mine))
        if self._failing:
            LOGGER.warning("instances share what they measure again")
        self._failing = False

    def _went_down(self, exc: BaseException) -> None:
        self.up = False
        if not self._failing:  # once for each outage
            LOGGER.warning("%s; each instance measures by itself", str(exc) or "the shared state does not answer")
        self._failing = True
