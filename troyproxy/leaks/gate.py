"""The guard's say in the commit: an answer is not begun while its first words may still be a leaked tool call.

Mode `suppress` never rejects an attempt: it only delays the commit, so that the leak can be named in a header. The
text itself is taken out by `suppress.py`, outside the walk.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NoReturn

from troyproxy.leaks.pieces import is_error
from troyproxy.leaks.suppress import find_leaks
from troyproxy.leaks.watch import Leak, Watch

_QUIET_EVENTS: Final = 64  # role-only and empty chunks; then the walk's own bound is to decide


class GateVerdict(StrEnum):
    """PENDING = do not commit yet; PASS = no objection; REJECT = end this attempt, try the next member."""

    PENDING = "pending"
    PASS = "pass"  # noqa: S105 -- a verdict, no password
    REJECT = "reject"


class LeakMode(StrEnum):
    """What is done about a leak. A name that is none of these raises ValueError with the allowed ones."""

    OFF = "off"
    SUPPRESS = "suppress"

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise ValueError(f"unknown leak mode {value!r}; allowed: {', '.join(cls)}")


class LeakGate:
    """One per request; call `reset` before each attempt's events."""

    def __init__(self, names: frozenset[str], mode: LeakMode) -> None:
        """*names* are the declared tools (`arming.armed`)."""
        self._names, self._mode = names, mode
        self.reset()

    @property
    def leaks(self) -> list[Leak]:
        """The leaks of the current attempt."""
        return self._leaks

    def reset(self) -> None:
        """A new attempt begins: nothing an abandoned one said counts any more."""
        self._watch, self._quiet = Watch(self._names), 0
        self._leaks = self._watch.leaks

    def feed(self, event: object, can_reject: bool) -> GateVerdict:  # noqa: FBT001 -- the gates' protocol
        """Take one decoded chunk of a stream."""
        del can_reject  # this mode never does
        if self._mode is LeakMode.OFF:
            return GateVerdict.PASS
        if self._watch.see(event):
            return GateVerdict.PENDING
        self._quiet += 1
        opened = self._watch.decided or is_error(event) or self._quiet > _QUIET_EVENTS
        return GateVerdict.PASS if opened else GateVerdict.PENDING

    def judge(self, body: object, can_reject: bool) -> GateVerdict:  # noqa: FBT001 -- the gates' protocol
        """Take a whole, decoded completion."""
        del can_reject
        self._leaks = [] if self._mode is LeakMode.OFF else list(find_leaks(body, self._names))
        return GateVerdict.PASS
