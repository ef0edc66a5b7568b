"""What one stream has shown so far: output, finish reasons, usage, an error. Decodes JSON only where it must.

Before the commit point every event is decoded; after it only events that may hold usage, an error or a finish reason.
"""

from __future__ import annotations

import re
from typing import Final

from troyproxy.accounting.usage import Usage, fuller, read_usage
from troyproxy.wire import chat, json
from troyproxy.wire.sse import Frame

_FINISH: Final = re.compile(rb'"finish_reason"\s*:\s*"')


class Tally:
    """Fed every frame of one upstream stream, in order."""

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

    def see(self, frame: Frame, *, whole: bool) -> object | None:
        """Take in *frame* and return its decoded event where it was decoded; *whole*: decode whatever it is."""
        data = frame.data
        if data is None:
            return None
        if frame.is_done:
            self.done = True
            return None
        if not data.lstrip().startswith(b"{"):
            self.dropped += 1
            return None
        self.events += 1
        if not (whole or self._choices > 1 or b'"usage"' in data or b'"error"' in data or _FINISH.search(data)):
            return None
        return self._read(data)

    def _read(self, data: bytes) -> object | None:
        try:
            event = json.decode(data)
        except json.MalformedJSON:
            self.malformed = True
            return None
        self.usage = fuller(self.usage, read_usage(event))
        self.error = chat.error_of(event)
        self._seen |= chat.seen_choices(event)
        self._finished |= chat.finished_choices(event)
        self.output = self.output or chat.has_output(event)
        return event


def forwardable(frame: Frame) -> bool:
    """Whether *frame* may reach a client: comments, JSON data, or the end mark; bogus data lines may not."""
    return frame.data is None or frame.is_done or frame.data.lstrip().startswith(b"{")
