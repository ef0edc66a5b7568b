"""What is measured of one candidate over a day: how often, how well, how fast. Bounded, and without a clock.

Requests are counted by the minute for an hour, successes by the hour for a day, and the latest latencies are kept as
they are. Figures are reckoned at most once a second, whoever asks.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

DAY_S: Final = 86_400.0
HOUR_S: Final = 3_600.0
MINUTE_S: Final = 60.0
SAMPLES: Final = 200
"""Latencies that are kept; older ones go first."""
FRESH_S: Final = 1.0
"""How long reckoned figures are good for."""
IDLE_S: Final = 60.0
"""The same where nothing was noted since: then they only age."""


@dataclass(frozen=True, slots=True)
class Measures:
    """The figures of one candidate. None: nothing was measured."""

    recent: int = 0
    """Requests in the last 60 minutes."""
    last_used_at: float = 0.0
    success_rate: float | None = None
    """Over the last 24 hours."""
    samples: int = 0
    p50_ms: float | None = None
    p95_ms: float | None = None
    sigma_ms: float | None = None

    @property
    def error_rate(self) -> float | None:
        """The share of failures."""
        return None if self.success_rate is None else 1.0 - self.success_rate


class Track:
    """The running record of one candidate."""

    __slots__ = (
        *("_hour_until", "_hours", "_last_used_at", "_latencies", "_minute_until", "_minutes", "_noted", "_reckoned"),
    )

    def __init__(self) -> None:
        self._minutes: deque[list[int]] = deque(maxlen=61)
        """[minute, requests]; one more than an hour has, as the first is cut."""
        self._hours: deque[list[int]] = deque(maxlen=25)
        """[hour, successes, failures]."""
        self._minute_until = self._hour_until = -math.inf
        """When the newest minute and hour are over."""
        self._latencies: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
        self._last_used_at = 0.0
        self._reckoned: tuple[float, Measures] | None = None
        self._noted = False
        """Whether something was noted since the figures were reckoned."""

    def note(self, at: float, *, ok: bool | None, latency_ms: float | None = None) -> None:
        """Write down one attempt that began at *at* (unix seconds); *ok* None: it says nothing of the candidate.

        Attempts come about in order; one that is older than the newest counts with the newest minute and hour.
        """
        self._noted = True
        if at > self._last_used_at:  # noqa: PLR1730 -- `max` costs more than all the rest
            self._last_used_at = at
        if at >= self._minute_until:
            self._minutes.append([int(at // MINUTE_S), 0])
            self._minute_until = (at // MINUTE_S + 1) * MINUTE_S
        self._minutes[-1][1] += 1
        if ok is None:
            return
        if at >= self._hour_until:
            self._hours.append([int(at // HOUR_S), 0, 0])
            self._hour_until = (at // HOUR_S + 1) * HOUR_S
        self._hours[-1][1 if ok else 2] += 1
        if ok and latency_ms is not None and -math.inf < latency_ms < math.inf:
            self._latencies.append((at, latency_ms if latency_ms > 0 else 0.0))

    @property
    def last_used_at(self) -> float:
        """When the latest attempt began, unix seconds."""
        return self._last_used_at

    def recent(self, now: float) -> int:
        """Return the requests in the last 60 minutes, always as of now."""
        return sum(slot[1] for slot in self._minutes if slot[0] > now // MINUTE_S - 60)

    def measures(self, now: float) -> Measures:
        """Return the figures at *now*, or those of less than a second before; of a minute, if nothing was noted."""
        if self._reckoned is None or not 0 <= now - self._reckoned[0] < (FRESH_S if self._noted else IDLE_S):
            self._reckoned, self._noted = (now, self._reckon(now)), False
        return self._reckoned[1]

    def _reckon(self, now: float) -> Measures:
        hours = [slot for slot in self._hours if slot[0] > now // HOUR_S - 24]
        good, bad = sum(slot[1] for slot in hours), sum(slot[2] for slot in hours)
        latencies = sorted(ms for at, ms in self._latencies if at > now - DAY_S)
        return Measures(
            recent=self.recent(now),
            last_used_at=self._last_used_at,
            success_rate=good / (good + bad) if good + bad else None,
            samples=len(latencies),
            p50_ms=quantile(latencies, 0.50),
            p95_ms=quantile(latencies, 0.95),
            sigma_ms=_sigma(latencies),
        )


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return the value below which *share* of the *ordered* values lie (nearest rank); None of nothing."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _sigma(values: Sequence[float]) -> float | None:
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
