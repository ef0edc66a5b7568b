"""The leak gate that follows the walk: each attempt is judged in the mode of its own provider."""

from __future__ import annotations

from collections.abc import Callable

from troyproxy.leaks.gate import GateVerdict, LeakGate
from troyproxy.leaks.policy import Leak
from troyproxy.middleware.leak_mode import ModeChoice
from troyproxy.proxy.call import Call


class ServingGate:
    """The leak gate of the attempt under way; *tell* hears of the leaks that end an attempt."""

    def __init__(self, call: Call, modes: ModeChoice, tell: Callable[[Leak], None]) -> None:
        self._call, self._modes, self._tell = call, modes, tell
        self._gate: LeakGate | None = None

    @property
    def plain(self) -> bool:
        """Whether a whole answer was judged, and there is nothing in it that the guard changes."""
        return self._gate is not None and self._gate.plain

    def reset(self) -> None:
        """A new attempt begins."""
        attempts = self._call.ledger.attempts
        policy = self._modes.policy(attempts[-1].provider if attempts else None)
        self._gate = LeakGate(policy) if policy is not None else None

    def feed(self, event: object, can_reject: bool) -> GateVerdict:  # noqa: FBT001 -- the gates' protocol
        """Take one decoded chunk of a stream."""
        return GateVerdict.PASS if self._gate is None else self._after(self._gate, self._gate.feed(event, can_reject))

    def judge(self, body: object, can_reject: bool) -> GateVerdict:  # noqa: FBT001 -- the gates' protocol
        """Take a whole, decoded completion."""
        self.reset()
        return GateVerdict.PASS if self._gate is None else self._after(self._gate, self._gate.judge(body, can_reject))

    def _after(self, gate: LeakGate, verdict: GateVerdict) -> GateVerdict:
        if verdict is GateVerdict.REJECT and gate.rejected is not None:
            self._tell(gate.rejected)
        elif verdict is GateVerdict.PASS and gate.leak is not None:
            # The head goes out next, and names what the answer's editor is about to do.
            self._call.ledger.leak = f"{gate.leak.format};{gate.leak.action}"
        return verdict
