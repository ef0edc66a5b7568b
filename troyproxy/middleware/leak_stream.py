"""Takes leaked tool calls out of one event stream: holds frames while their text is undecided, then edits or frees.

What is a leak, `leaks.suppress` decides; this is the holding.
"""

from __future__ import annotations

from collections.abc import Callable

from troyproxy.leaks.suppress import ActionKind, Fate, Leak, Outcome, StreamSuppressor
from troyproxy.wire import json
from troyproxy.wire.sse import Frame, with_data


class LeakStream:
    """The state of one streamed answer of *choices* choices; *tell* hears of each leak once."""

    def __init__(self, choices: int, names: frozenset[str], tell: Callable[[Leak], None]) -> None:
        self._tell = tell
        self._suppressor = StreamSuppressor(names)
        self._held: list[Frame] = []
        self._told = 0
        self._choices = choices

    def edit(self, frames: list[Frame], *, last: bool) -> list[Frame]:
        """Return what goes out for *frames*; with *last* nothing stays behind."""
        out: list[Frame] = []
        for frame in frames:
            out += self._take(frame)
        if last:
            out += self._flush()
        return out

    def _take(self, frame: Frame) -> list[Frame]:
        if frame.is_done:
            return [*self._flush(), frame]
        event = None if frame.data is None or self._suppressor.settled(self._choices) else _decoded(frame.data)
        if event is None:
            return self._behind(frame)
        action = self._suppressor.feed(event, size=len(frame.raw))
        self._held.append(frame)
        return [] if action.kind is ActionKind.HOLD else self._release(action.edited)

    def _behind(self, frame: Frame) -> list[Frame]:
        """Comments may overtake what is held: they keep the connection alive and say nothing."""
        return [frame] if frame.data is None or not self._held else [*self._flush(), frame]

    def _flush(self) -> list[Frame]:
        return self._release(self._suppressor.flush().edited)

    def _release(self, outcomes: tuple[Outcome, ...]) -> list[Frame]:
        for leak in self._suppressor.leaks[self._told :]:
            self._tell(leak)
        self._told = len(self._suppressor.leaks)
        held, self._held = self._held, []
        if not outcomes:
            return held
        pairs = zip(held, outcomes, strict=True)
        return [kept for frame, outcome in pairs if (kept := _outcome(frame, outcome)) is not None]


def _outcome(frame: Frame, outcome: Outcome) -> Frame | None:
    if outcome is Fate.KEEP:
        return frame
    return with_data(frame, json.encode(outcome)) if isinstance(outcome, dict) else None


def _decoded(data: bytes) -> object | None:
    try:
        return json.decode(data)
    except json.MalformedJSON:
        return None
