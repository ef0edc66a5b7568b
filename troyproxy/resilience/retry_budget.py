"""The retry budget: how many attempts beyond the first the whole process may make, so that an outage is not multiplied.

Over the last ten seconds: a share of the requests that came in, plus a floor so that a quiet gateway fails over freely.
Counts stand in one-second buckets, so the state is a handful of numbers whatever the traffic. No clock: *at* and *now*
are unix seconds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

WINDOW_S: Final = 10


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """*ratio* of the window's requests, plus *floor_per_s* a second; a *ratio* of 0 is no limit at all."""

    ratio: float = 0.2
    floor_per_s: float = 10.0


@dataclass(slots=True)
class Bucket:
    """What one second saw."""

    second: int
    requests: int = 0
    retries: int = 0


class RetryBudget:
    """The last ten seconds, oldest first."""

    __slots__ = ("_newest", "buckets")

    def __init__(self) -> None:
        self.buckets: deque[Bucket] = deque()
        self._newest = Bucket(-1)

    def request(self, at: float) -> None:
        """Count a request."""
        newest = self._newest
        if not newest.second <= at < newest.second + 1:
            newest = self._at(at)
        newest.requests += 1

    def retry(self, at: float) -> None:
        """Count an attempt beyond a request's first."""
        self._at(at).retries += 1

    def allows(self, now: float, policy: RetryPolicy) -> bool:
        """Whether one more attempt beyond the first fits."""
        if not policy.ratio:
            return True
        recent = [bucket for bucket in self.buckets if bucket.second > int(now) - WINDOW_S]
        limit = policy.ratio * sum(b.requests for b in recent) + policy.floor_per_s * WINDOW_S
        return sum(b.retries for b in recent) + 1 <= limit

    def _at(self, at: float) -> Bucket:
        """Return the bucket of *at*; with a clock that went back it is the newest one."""
        if at >= self._newest.second + 1 or not self.buckets:
            self._newest = Bucket(int(at))
            self.buckets.append(self._newest)
            while self.buckets[0].second <= self._newest.second - WINDOW_S:
                self.buckets.popleft()
        return self._newest
