"""Sums over stored requests: of a window of time, and by the day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from troyproxy.accounting.statistics import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class DailySum:
    """The sums of one UTC day, of everything or of one group. Tokens and costs that nobody knew count as 0 in them."""

    day: str
    """``2026-01-31``."""
    group: str | None = None
    """A provider, a ``provider/model`` or a key's id; None for everything, and for requests without one."""
    name: str | None = None
    """What people call the group."""
    requests: int = 0
    succeeded: int = 0
    client_errors: int = 0
    failed: int = 0
    cancelled: int = 0
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    wasted_tokens: int = 0
    cost_usd: float = 0.0
    duration_ms: float = 0.0


class Statistics(Protocol):
    """Every method raises StoreUnavailable, and reads a bounded number of rows."""

    async def window(self, since: float) -> Window:
        """Return what was stored since an instant (unix seconds)."""

    async def daily(self, first: str, last: str) -> Sequence[DailySum]:
        """Return the sums of the days from *first* to *last*, oldest first; a day without requests is not there."""

    async def daily_by(self, group_by: str, first: str, last: str) -> Sequence[DailySum]:
        """Return the same by ``provider``, ``model`` or ``key``, of the groups with the most requests."""
