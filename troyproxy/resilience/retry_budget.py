"""The retry budget: how many attempts beyond the first the whole process may make, so that an outage is not multiplied.

Over the last ten seconds: a share of the requests that came in, plus a floor so that a quiet gateway fails over freely.
Counts stand in one-second buckets, so the state is a handful of numbers whatever the traffic. No clock: *at* and *now*
are unix seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WINDOW_S: Final = 10


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """*ratio* of the window's requests, plus *floor_per_s* a second; a *ratio* of 0 is no limit at all."""

    ratio: float = 0.2
    floor_per_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Bucket:
    """What one second saw."""

    second: int
    requests: int = 0
    retries: int = 0


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """The last ten seconds, oldest first; never changed in place."""

    buckets: tuple[Bucket, ...] = ()

    def after_request(self, at: float) -> RetryBudget:
        """Return the budget one request later."""
        return self._counted(at, requests=1)

    def after_retry(self, at: float) -> RetryBudget:
        """Return the budget one attempt beyond a request's first later."""
        return self._counted(at, retries=1)

    def allows(self, now: float, policy: RetryPolicy) -> bool:
        """Whether one more attempt beyond the first fits."""
        if not policy.ratio:
            return True
        recent = [bucket for bucket in self.buckets if bucket.second > int(now) - WINDOW_S]
        limit = policy.ratio * sum(b.requests for b in recent) + policy.floor_per_s * WINDOW_S
        return sum(b.retries for b in recent) + 1 <= limit

    def _counted(self, at: float, *, requests: int = 0, retries: int = 0) -> RetryBudget:
        """Add to the bucket of *at*; a clock that went back adds to the newest one."""
        second = max(int(at), self.buckets[-1].second if self.buckets else int(at))
        kept = tuple(bucket for bucket in self.buckets if bucket.second > second - WINDOW_S)
        last = kept[-1] if kept and kept[-1].second == second else None
        older = kept[:-1] if last is not None else kept
        last = last or Bucket(second)
        return RetryBudget((*older, Bucket(second, last.requests + requests, last.retries + retries)))
