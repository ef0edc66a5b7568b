"""What one account has used of its own quota: requests, tokens and USD of this minute, hour, day and month.

Windows are those of the UTC calendar, so that each has one end that can be told, and a count is exact. What an attempt
uses belongs to the window in which it began. Bounded: one count for each period.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from typing import Final

from troyproxy.accounting.limits import next_month

PERIODS: Final = ("minute", "hour", "day", "month")
_LENGTH_S: Final = {"minute": 60.0, "hour": 3_600.0, "day": 86_400.0}


def window_of(period: str, at: float) -> tuple[float, float]:
    """Return begin and end (unix seconds) of the minute, hour, day or month that holds *at*."""
    length_s = _LENGTH_S.get(period)
    if length_s is not None:
        begin = at // length_s * length_s
        return begin, begin + length_s
    first = datetime.fromtimestamp(at, tz=UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return first.timestamp(), next_month(at)


@dataclass(slots=True)
class Used:
    """The count of one window."""

    begin: float
    end: float
    requests: int = 0
    tokens: int = 0
    usd: float = 0.0

    def add(self, requests: int, tokens: int, usd: float) -> None:
        """Count so much more."""
        self.requests += requests
        self.tokens += tokens
        self.usd += usd

    def of(self, kind: str) -> float:
        """Return the count of *kind*: ``requests``, ``tokens`` or ``usd``."""
        return {"requests": self.requests, "tokens": self.tokens}.get(kind, self.usd)


class Consumption:
    """The running counts of one account.

    What is used at a moment that lies in every window is summed up aside, and shared out when somebody looks or the
    first of the windows is over.
    """

    __slots__ = ("_aside", "_begin", "_end", "_windows")

    def __init__(self) -> None:
        self._windows: dict[str, Used] = {}
        self._begin, self._end = inf, -inf
        """The moments that lie in every window: from the latest begin to the earliest end."""
        self._aside = Used(inf, -inf)

    def add(self, at: float, *, requests: int = 0, tokens: int = 0, usd: float = 0.0) -> None:
        """Count what an attempt that began at *at* uses; for a window that is over it is nothing any more."""
        if self._begin <= at < self._end:
            aside = self._aside
            aside.requests += requests
            aside.tokens += tokens
            aside.usd += usd
            return
        for period in PERIODS:
            self.add_to(period, at, requests=requests, tokens=tokens, usd=usd)
        windows = self._windows.values()
        self._begin, self._end = max(window.begin for window in windows), min(window.end for window in windows)

    def add_to(self, period: str, at: float, *, requests: int = 0, tokens: int = 0, usd: float = 0.0) -> None:
        """Count it for one *period* only."""
        self._share_out()
        window = self._windows.get(period)
        if window is None or at >= window.end:
            window = self._windows[period] = Used(*window_of(period, at))
            self._begin, self._end = inf, -inf
        if at >= window.begin:
            window.add(requests, tokens, usd)

    def used(self, period: str, now: float) -> Used:
        """Return the count of the window that holds *now*."""
        self._share_out()
        window = self._windows.get(period)
        if window is not None and window.begin <= now < window.end:
            return window
        return Used(*window_of(period, now))

    def _share_out(self) -> None:
        """Count in every window what was summed up aside."""
        aside = self._aside
        for window in self._windows.values():
            window.add(aside.requests, aside.tokens, aside.usd)
        aside.requests, aside.tokens, aside.usd = 0, 0, 0.0
