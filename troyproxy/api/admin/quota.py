"""``GET /api/admin/ai/quota``: the quota board. It asks no upstream, and has a rate limit of its own."""

from __future__ import annotations

import os
from collections import deque
from typing import Final

from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.quota_schema import BOARD
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.services import Services
from troyproxy.errors import RateLimited
from troyproxy.ports import Clock

MOST: Final = 120
"""Boards a minute and process: each reads the database."""
WINDOW_S: Final = 60.0


class Pace:
    """So many times within a window, and no more."""

    def __init__(self, clock: Clock, most: int = MOST, window_s: float = WINDOW_S) -> None:
        self._clock, self._window_s = clock, window_s
        self._at: deque[float] = deque(maxlen=most)

    def step(self) -> None:
        """Count once more. Raises RateLimited, which counts nothing."""
        now = self._clock.monotonic()
        if len(self._at) == self._at.maxlen and now - self._at[0] < self._window_s:
            wait_s = self._at[0] + self._window_s - now
            raise RateLimited(f"at most {self._at.maxlen} boards within {self._window_s:g} s", retry_after_s=wait_s)
        self._at.append(now)


class Quota:
    """The handler."""

    def __init__(self, services: Services) -> None:
        self._page, self._pace = services.quota, Pace(services.clock)
        self._worker = {"name": services.worker, "pid": os.getpid()}

    def operations(self) -> list[Operation]:
        """Return what can be looked at."""
        return [
            Operation(
                "GET",
                "/api/admin/ai/quota",
                self.read,
                "state",
                "The quota board: documented ceilings, usage of the UTC day, live signals.",
                {200: BOARD},
                fails=(RateLimited,),
                description="What is not known is absent; no zero stands for it. Nothing is subtracted: others may "
                "use the same key. Signals, cooldowns and circuits are those of the process that answers.",
            )
        ]

    async def read(self, request: AdminRequest) -> Answer:
        """``GET /api/admin/ai/quota``."""
        del request
        self._pace.step()
        return Answer({"worker": self._worker, **await self._page.page()})
