"""What one stream has shown so far: output, finish reasons, usage, an error. Decodes JSON only where it must.

Before the commit point every event is decoded; after it only events that may hold usage, an error or a finish reason.
That an event is none of these is seen at a glance (`pass_on`), which is nearly all there is to a long answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from troyproxy.accounting.usage import Usage, fuller, read_usage
from troyproxy.wire import chat, json
from troyproxy.wire.deltas import UNREAD, opening, passing
from troyproxy.wire.sse import Frame

MAX_CHOICES: Final = 1 << 20
_FINISH: Final = re.compile(rb'"finish_reason"\s*:\s*"')
_FIELD: Final = re.compile(rb"(?:\A|[\r\n])[^:\r\n]")
"""A line that is neither blank nor a comment."""


class Tally:
    """Fed every frame of one upstream stream, in order."""

    __slots__ = ("_choices", "_finished", "_seen", "done", "dropped", "error", "events", "malformed", "output", "usage")

    def __init__(self, *, choices: int = 1) -> None:
        self._choices = choices
        self._finished: set[int] = set()
        self._seen: set[int] = set()
        self.usage: Usage | None = None
        self.error: object | None = None
        self.done = False
        self.output = False
        self.events = 0
        self.dropped = 0
        """Data frames that were neither JSON nor the end mark."""
        self.malformed = False
        """An event that had to be decoded was no JSON."""

    @property
    def finished(self) -> bool:
        """Whether every choice that was seen has a finish reason."""
        return bool(self._finished) and self._seen <= self._finished

    def pass_on(self, frames: Sequence[Frame]) -> bool:
        """Take in *frames* if they pass (`passes`), else none of them."""
        if not self.passes(frames):
            return False
        self.events += len(frames)
        return True

    def passes(self, frames: Sequence[Frame]) -> bool:
        """Whether all *frames* go out as they are and say nothing new. Each of them is an event.

        Only once there was output. What `see` and `forwardable` say of such frames is just that, at several times the
        cost.
        """
        if not self.output:
            return False
        seen = self._seen
        try:
            for frame in frames:
                data = frame.data
                if data is None or frame.event is not None or not frame.complete:
                    return False
                if passing(data).choices[0].index not in seen:
                    return False
        except UNREAD:
            return False
        return True

    def opens(self, frame: Frame) -> bool:
        """Take *frame* in if it is as nearly all streams begin: a role or a text in one choice, and nothing else.

        False: it is for `see`, which would say the same of such a frame.
        """
        if frame.data is None or frame.event is not None or not frame.complete:
            return False
        try:
            (choice,) = opening(frame.data).choices
        except UNREAD:
            return False
        self.events += 1
        self._seen.add(choice.index)
        self.output = self.output or bool(choice.delta.content)
        return True

    def see(self, frame: Frame, *, whole: bool) -> object | None:
        """Take in *frame* and return its decoded event where it was decoded; *whole*: decode whatever it is."""
        data = frame.data
        if data is None:
            return None
        if frame.is_done:
            self.done = True
            return None
        if is_ping(frame):
            return None
        if not _is_object(data):
            self.dropped += 1
            return None
        if frame.complete and not (whole or self._must_read(data)):
            self.events += 1
            return None
        return self._read(data, complete=frame.complete)

    def _must_read(self, data: bytes) -> bool:
        return self._choices > 1 or b'"usage"' in data or b'"error"' in data or _FINISH.search(data) is not None

    def _read(self, data: bytes, *, complete: bool) -> object | None:
        try:
            event = json.decode(data)
        except json.MalformedJSON:
            # The last event of a stream that was cut is no event at all; any other is the upstream's fault.
            self.malformed = self.malformed or complete
            return None
        self.events += 1
        self.usage = fuller(self.usage, read_usage(event))
        self.error = chat.error_of(event)
        for index, choice in chat.choices_in(event):
            self._seen.add(index)
            if choice.get("finish_reason"):  # an empty one is none: several vendors put it on every event
                self._finished.add(index)
                self.output = True
            elif not self.output:
                self.output = chat.has_output(choice)
        return event


def choices_of(payload: Mapping[str, object]) -> int:
    """Return how many choices a request asks for; what is no sensible number is one."""
    count = payload.get("n")
    if isinstance(count, bool) or not isinstance(count, int | float) or not 1 < count <= MAX_CHOICES:
        return 1
    return int(count)


def is_ping(frame: Frame) -> bool:
    """Whether *frame* only keeps the connection alive: a comment, a named ping, or an empty object."""
    return frame.data is None or frame.event == b"ping" or frame.data.strip() in {b"{}", b""}


def forwardable(frame: Frame) -> bool:
    """Whether *frame* may reach a client: a comment, a JSON object, the end mark; no ping in ``data``, no bogus line.

    A frame of ``id``, ``retry`` or ``event`` alone may not: by the grammar it dispatches nothing, but the official SDK
    dispatches it with empty data, and fails to parse that. The last event of a stream that ended without its blank line
    may, if it is whole (see `Tally.see`).
    """
    if frame.data is None:
        return _FIELD.search(frame.raw) is None
    if frame.is_done:
        return True
    return not is_ping(frame) and _is_object(frame.data)


def _is_object(data: bytes) -> bool:
    return data.lstrip().startswith(b"{")
