"""The real clock behind `ports.Clock`."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """The real time."""

    def now(self) -> float:
        """Return unix seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds for measuring durations."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
