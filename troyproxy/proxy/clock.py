"""The real clock behind `ports.Clock`."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """The real time."""

    now = staticmethod(time.time)
    """Unix seconds. No method of ours around it: every request asks several times."""
    monotonic = staticmethod(time.monotonic)
    """Seconds for measuring durations."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
