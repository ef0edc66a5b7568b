"""HELD: the part of a stream before the commit point. Pure; the clocks and the reading are the relay's.

HELD ──first output, every gate passes──▶ COMMIT
  ├──error event──▶ ERROR; a gate rejects, or the upstream lost a tool call──▶ REJECTED: the walk goes on
  ├──``[DONE]``──▶ END: what was held decides
  └──64 events or 256 KiB without output──▶ COMMIT (unless a gate still waits: gates have their own caps)

Only events are held. Comments and pings may be dropped, and a patient upstream may send hundreds of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from troyproxy.leaks.gate import GateVerdict
from troyproxy.proxy.call import Gate
from troyproxy.proxy.tally import Tally
from troyproxy.wire import chat, json
from troyproxy.wire.sse import Frame

MAX_STRAY: Final = 64 * 1024


class HeadState(Enum):
    """What the head says after a frame."""

    HELD = auto()
    COMMIT = auto()
    END = auto()
    ERROR = auto()
    REJECTED = auto()


class StreamHead:
    """Holds back the first frames of one attempt until they show output."""

    def __init__(
        self, tally: Tally, gates: Sequence[Gate], *, max_events: int, max_bytes: int, can_reject: bool
    ) -> None:
        self._tally, self._gates, self._can_reject = tally, gates, can_reject
        self._max_events, self._max_bytes = max_events, max_bytes
        self.frames: list[Frame] = []
        self.stray = bytearray()
        """Bytes that are no events at all: HTML, or the JSON of an upstream that does not stream. Bounded."""
        self.failed_call: object | None = None
        """The event by which the upstream says that it could not make the model's call out."""
        self._bytes = 0
        self._waiting = False
        for gate in gates:
            gate.reset()

    def take(self, frame: Frame) -> HeadState:
        """Hold *frame* and say whether the stream may begin."""
        if not self._gates and self._tally.opens(frame):
            self._hold(frame)
            return HeadState.COMMIT if self._tally.output or self._full else HeadState.HELD
        spoke = self._tally.output
        event = self._tally.see(frame, whole=True)
        if self._tally.error is not None or self._tally.malformed:
            return HeadState.ERROR
        if frame.is_done:
            return HeadState.END
        if event is None:
            self._note_stray(frame)
            return HeadState.HELD
        self._hold(frame)
        if not spoke and chat.failed_call(event) is not None:
            self.failed_call = event
            return HeadState.REJECTED
        return self._judge(event)

    def _hold(self, frame: Frame) -> None:
        self.frames.append(frame)
        self._bytes += len(frame.raw)

    def _judge(self, event: object) -> HeadState:
        verdicts = [gate.feed(event, self._can_reject) for gate in self._gates]
        self._waiting = GateVerdict.PENDING in verdicts
        if GateVerdict.REJECT in verdicts:
            return HeadState.REJECTED
        if self._waiting:
            return HeadState.HELD
        return HeadState.COMMIT if self._tally.output or self._full else HeadState.HELD

    def _note_stray(self, frame: Frame) -> None:
        if frame.data is None and not frame.raw.startswith(b":") and len(self.stray) < MAX_STRAY:
            self.stray += frame.raw[:MAX_STRAY]

    @property
    def stray_error(self) -> object | None:
        """The error that an upstream tells without any event: a JSON body under a 200."""
        try:
            return chat.error_of(json.decode(bytes(self.stray)))
        except json.MalformedJSON:
            return None

    @property
    def _full(self) -> bool:
        return len(self.frames) >= self._max_events or self._bytes >= self._max_bytes
