"""What is measured of every candidate (provider, model, account): how much it carries, how often, how well, how fast.

Of this process, and of what others tell it. Bounded: the candidates that were least recently used are forgotten first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from troyproxy.accounting.finished import Finished
from troyproxy.accounting.track import Measures, Track
from troyproxy.proxy.bounds import use

TRACKS: Final = 10_000
MOST_WAITING: Final = 64
"""Attempts that are written down together, at the latest."""
UNMEASURED: Final = Measures()

Key = tuple[str, str, str]
"""Provider, model (the id that is sent upstream), name of the account."""


class Statistics:
    """Owns the tracks, and the attempts in flight of this process."""

    def __init__(self, *, bound: int = TRACKS) -> None:
        self._bound = bound
        self._tracks: dict[Key, Track] = {}
        self._inflight: dict[Key, int] = {}
        self._waiting: list[Finished] = []
        """Ended, and not written down: that is done for many at once, or when somebody asks, at half the cost."""

    def carry(self, key: Key) -> None:
        """An attempt begins."""
        self._inflight[key] = self._inflight.get(key, 0) + 1

    def release(self, key: Key) -> None:
        """An attempt that began has ended, however."""
        left = self._inflight.pop(key, 1) - 1
        if left > 0:
            self._inflight[key] = left

    def inflight(self, key: Key) -> int:
        """Return how many attempts the candidate carries now.

        They are counted for each model of an account: to choose among models of one account is to choose among these.
        """
        return self._inflight.get(key, 0)

    def note(self, finished: Finished) -> None:
        """Write down an attempt that has ended."""
        self._waiting.append(finished)
        if len(self._waiting) >= MOST_WAITING:
            self._catch_up()

    def _catch_up(self) -> None:
        waiting, self._waiting = self._waiting, []
        for finished in waiting:
            key = (finished.provider, finished.model, finished.account)
            track = use(self._tracks, key, Track, self._bound)
            track.note(finished.at, ok=finished.ok, latency_ms=finished.latency_ms)

    def _track(self, key: Key) -> Track | None:
        if self._waiting:
            self._catch_up()
        return self._tracks.get(key)

    def begin_anew(self, past: Iterable[Finished]) -> None:
        """Forget what was measured, and take over *past*, oldest first."""
        self._tracks.clear()
        self._waiting.clear()
        for finished in past:
            self.note(finished)

    def measures(self, key: Key, now: float) -> Measures:
        """Return the figures of a candidate, at most a second old."""
        track = self._track(key)
        return UNMEASURED if track is None else track.measures(now)

    def use(self, key: Key, now: float) -> tuple[int, float]:
        """Return the requests of the last 60 minutes and when the latest began, as of now: figures may be older."""
        track = self._track(key)
        return (0, 0.0) if track is None else (track.recent(now), track.last_used_at)

    def __len__(self) -> int:
        """Return how many candidates are remembered."""
        self._catch_up()
        return len(self._tracks)
