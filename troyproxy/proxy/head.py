"""HELD: the part of a stream before the commit point. Pure; the clocks and the reading are the relay's.

HELD ──first output, every gate passes──▶ COMMITTED
  ├──error event, or a gate rejects──▶ the attempt failed, the walk goes on
  └──64 events or 256 KiB without output──▶ COMMITTED (unless a gate still waits: gates have their own caps)
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from troyproxy.leaks.gate import GateVerdict
from troyproxy.proxy.call import Gate
from troyproxy.proxy.tally import Tally, forwardable
from troyproxy.wire.sse import Frame


class HeadState(Enum):
    """What the head says after a frame."""

    HELD = auto()
    COMMIT = auto()
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
        self._bytes = 0
        for gate in gates:
            gate.reset()

    def take(self, frame: Frame) -> HeadState:
        """Hold *frame* and say whether the stream may begin."""
        event = self._tally.see(frame, whole=True)
        if self._tally.error is not None or self._tally.malformed:
            return HeadState.ERROR
        if forwardable(frame):
            self.frames.append(frame)
            self._bytes += len(frame.raw)
        verdicts = [gate.feed(event, self._can_reject) for gate in self._gates] if event is not None else []
        if GateVerdict.REJECT in verdicts:
            return HeadState.REJECTED
        if GateVerdict.PENDING in verdicts:
            return HeadState.HELD
        return HeadState.COMMIT if self._tally.output or self._full else HeadState.HELD

    @property
    def _full(self) -> bool:
        return len(self.frames) >= self._max_events or self._bytes >= self._max_bytes
