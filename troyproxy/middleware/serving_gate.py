"""The leak gate that follows the walk: each attempt is judged in the mode of its own provider."""

from __future__ import annotations

from troyproxy.leaks.gate import GateVerdict, LeakGate, LeakMode
from troyproxy.leaks.suppress import Leak
from troyproxy.middleware.leak_mode import ModeChoice
from troyproxy.proxy.call import Call


class ServingGate:
    """The leak gate of the attempt under way, in the mode of that attempt's provider."""

    def __init__(self, call: Call, names: frozenset[str], modes: ModeChoice) -> None:
        self._call, self._names, self._modes = call, names, modes
        self._gate = LeakGate(names, LeakMode.OFF)

    @property
    def leaks(self) -> list[Leak]:
        """The leaks of the current attempt."""
        return self._gate.leaks

    def reset(self) -> None:
        """A new attempt begins."""
        attempts = self._call.ledger.attempts
        self._gate = LeakGate(self._names, self._modes.of(attempts[-1].provider if attempts else None))

    def feed(self, event: object, can_reject: bool) -> GateVerdict:  # noqa: FBT001 -- the gates' protocol
        """Take one decoded chunk of a stream."""
        return self._gate.feed(event, can_reject)

    def judge(self, body: object, can_reject: bool) -> GateVerdict:  # noqa: FBT001 -- the gates' protocol
        """Take a whole, decoded completion."""
        self.reset()
        return self._gate.judge(body, can_reject)
