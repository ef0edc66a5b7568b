"""The guard's say in the commit: an answer is not begun while its first words may still be a leaked tool call.

undecided                                     PENDING: nothing is sent yet
a leak, and another member may be asked       REJECT, in the modes that fail over
a leak that may become a call                 PENDING to its end: only then is it known what came of it
anything else                                 PASS: from here on `filter` edits what is relayed
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from troyproxy.leaks.choice_watch import ChoiceWatch
from troyproxy.leaks.filter import MAX_CHOICES
from troyproxy.leaks.modes import LeakAction, LeakMode
from troyproxy.leaks.options import Exhausted, Options, Unrepairable
from troyproxy.leaks.pieces import Piece, is_error, pieces
from troyproxy.leaks.policy import Leak, Policy
from troyproxy.leaks.tables import is_unsigned

_QUIET_EVENTS: Final = 64
"""Role-only and empty chunks; then the walk's own bound is to decide."""
_WAITING_EVENTS: Final = 16 * 1024
"""Events that are waited for while a leak is read to its end."""


class GateVerdict(StrEnum):
    """PENDING = do not commit yet; PASS = no objection; REJECT = end this attempt, try the next member."""

    PENDING = "pending"
    PASS = "pass"  # noqa: S105 -- a verdict, no password
    REJECT = "reject"


class LeakGate:
    """One per attempt."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self._edits = policy, policy.edits
        self._choices: dict[int, ChoiceWatch] = {}
        self._said = False
        """Output that is no part of a leak: from here on the client has an answer."""
        self._events = self._quiet = 0
        self.plain = False
        """A whole answer was judged, and there is nothing in it that the guard changes."""

    @property
    def leak(self) -> Leak | None:
        """The first leak whose end is known."""
        for index, watch in self._choices.items():
            if watch.evidence is not None and watch.action is not None:
                return Leak(index, watch.evidence.format, watch.action)
        return None

    @property
    def rejected(self) -> Leak | None:
        """The first leak, as the reason to leave this member."""
        for index, watch in self._choices.items():
            if watch.evidence is not None:
                return Leak(index, watch.evidence.format, LeakAction.FAILED_OVER)
        return None

    def feed(self, event: object, can_reject: bool) -> GateVerdict:  # noqa: FBT001 -- the gates' protocol
        """Take one decoded chunk of a stream."""
        if not self._edits or self._said:
            return GateVerdict.PASS
        self._events += 1
        spoke = False
        for piece in pieces(event):
            spoke = self._see(piece) or spoke
        if is_error(event):
            return GateVerdict.PASS
        if self._rejects(can_reject=can_reject and not self._said):
            return GateVerdict.REJECT
        return GateVerdict.PASS if self._said else self._patient(spoke=spoke)

    def judge(self, body: object, can_reject: bool) -> GateVerdict:  # noqa: FBT001 -- the gates' protocol
        """Take a whole, decoded completion: nothing of it was sent."""
        if not self._edits:
            return GateVerdict.PASS
        response_id = body.get("id") if isinstance(body, dict) else None
        good, self.plain = False, True
        for piece in pieces(body, "message"):
            self.plain = self.plain and not (piece.thoughts or piece.calls)
            if is_clean(piece.text, self._policy.options):
                good = True
                continue
            watch = self._watch(piece.index)
            if watch is not None:
                read_whole(watch, piece, response_id if isinstance(response_id, str) else "")
            self.plain = self.plain and watch is not None and watch.evidence is None
        leaked = [watch for watch in self._choices.values() if watch.evidence is not None]
        good = good or len(leaked) < len(self._choices)
        if leaked and not good and (self._rejects(can_reject=can_reject) or self._refuses()):
            return GateVerdict.REJECT
        return GateVerdict.PASS

    def _watch(self, index: int) -> ChoiceWatch | None:
        if index not in self._choices and len(self._choices) < MAX_CHOICES:
            self._choices[index] = ChoiceWatch(self._policy, index)
        return self._choices.get(index)

    def _see(self, piece: Piece) -> bool:
        """Take one choice of an event; return whether it brought anything."""
        watch = self._watch(piece.index)
        if watch is None:
            self._said = True
            return True
        if piece.structured:
            watch.note_structured()
        if piece.text:
            watch.take(piece.text)
        if piece.finish is not None:
            watch.finish(piece.finish, "")
        ended_well = piece.finish is not None and watch.evidence is None
        self._said = self._said or piece.other or ended_well or watch.shown > 0
        return bool(piece.text or piece.finish)

    def _rejects(self, *, can_reject: bool) -> bool:
        if not can_reject:
            return False
        watches = [watch for watch in self._choices.values() if watch.evidence is not None]
        if not watches:
            return False
        if self._policy.mode.rejects:
            return True
        failed = all(watch.action is LeakAction.SUPPRESSED for watch in watches)
        wanted = self._policy.options.on_unrepairable is Unrepairable.FAILOVER
        return self._policy.mode is LeakMode.REPAIR and wanted and failed

    def _refuses(self) -> bool:
        """Whether an answer that leaked is no answer, even the last one."""
        return self._policy.mode is LeakMode.FAILOVER and self._policy.options.on_exhausted is Exhausted.ERROR

    def _patient(self, *, spoke: bool) -> GateVerdict:
        opened = False
        for watch in self._choices.values():
            if watch.finished or watch.action is not None:
                continue
            opened = True
            if watch.capturing or watch.holding:
                return GateVerdict.PENDING if self._events <= _WAITING_EVENTS else GateVerdict.PASS
        if self._choices and not opened:
            return GateVerdict.PASS
        self._quiet += not spoke
        return GateVerdict.PASS if self._quiet > _QUIET_EVENTS else GateVerdict.PENDING


def is_clean(text: str, options: Options) -> bool:
    """Whether one look at a whole text shows that it is none of the guard's business."""
    return not options.extra_openers and is_unsigned(text)


def read_whole(watch: ChoiceWatch, piece: Piece, response_id: str) -> None:
    """Give *watch* the one piece of a whole answer."""
    if piece.structured:
        watch.note_structured()
    watch.take(piece.text)
    watch.finish(piece.finish, response_id)
