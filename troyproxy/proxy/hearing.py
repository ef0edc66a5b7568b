"""The ear of a stream that has begun: ordinary events are passed on in the very turn of the event loop that brings
them, and the task that reads the stream sleeps on. What an event costs is mostly here.

It also keeps the time of what came, for the task too: since when the upstream is quiet, and the gaps between events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from troyproxy.proxy.client import Client
from troyproxy.proxy.tally import Tally
from troyproxy.wire.sse import Frame

GAP_SAMPLE: Final = 512
"""Gaps between events that are kept of one stream at most, for the histogram."""


class Hearing:
    """*idle_s* may pass between events; *gaps_s* is where the gaps between them go."""

    __slots__ = ("_alarm", "_at_once", "_client", "_gaps_s", "_idle_s", "_last", "_tally", "_time", "quiet_since")

    def __init__(self, tally: Tally, client: Client, *, idle_s: float, gaps_s: list[float]) -> None:
        self._tally, self._client, self._alarm = tally, client, client.alarm
        self._idle_s, self._gaps_s, self._time = idle_s, gaps_s, client.alarm.time
        self._at_once: Callable[[bytes], list[Frame]]
        self._last = self.quiet_since = self._time()

    def begin(self, at_once: Callable[[bytes], list[Frame]]) -> Callable[[bytes], bool]:
        """Return the ear; *at_once* gives the frames of a read that is nothing but events, as the decoder has it."""
        self._at_once = at_once
        self._client.go_straight()
        return self.hear

    def hear(self, chunk: bytes) -> bool:
        """Pass on the events of *chunk*, and wait for the next; False: none is taken, they need the task."""
        at_once, time = self._at_once, self._time  # a callable in a local name is called faster
        frames, tally = at_once(chunk), self._tally
        if not (frames and tally.passes(frames)):
            return False
        now = time()
        if not self._client.at_once(frames, now):
            return False
        if tally.events <= GAP_SAMPLE:
            self._gaps_s.append(now - self._last)
        tally.events += len(frames)
        self._last = self.quiet_since = now
        self._alarm.at = now + self._idle_s
        return True

    def note(self, before: int) -> float:
        """Note when events came, where there are more than *before*; return the time."""
        now = self._time()
        if self._tally.events > before:
            if before <= GAP_SAMPLE:
                self._gaps_s.append(now - self._last)
            self._last = self.quiet_since = now
        return now
