"""Time, read at the edge only."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Time, read at the edge only."""

    def now(self) -> float:
        """Return unix seconds."""

    def monotonic(self) -> float:
        """Return seconds for measuring durations."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""
