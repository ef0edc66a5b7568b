"""One choice under watch: what of its text is clean, where a leak begins, and what came of it.

Gate and filter both read it, so they cannot disagree. Offsets count the characters of the choice's content since the
beginning of the answer. It holds no frames and changes nothing.

    clean so far ──leak──▶ capturing ──end──▶ repaired, or suppressed
                     └───▶ suppressed (or observed) at once, where nothing may be repaired
"""

from __future__ import annotations

from troyproxy.leaks.modes import LeakAction, LeakMode
from troyproxy.leaks.policy import Policy
from troyproxy.leaks.repair import Repair
from troyproxy.leaks.scanner import Evidence

FILTERED = "content_filter"
"""The finish reason after which nothing is repaired."""


class ChoiceWatch:
    """One per choice of one answer."""

    def __init__(self, policy: Policy, index: int) -> None:
        self._policy, self._index = policy, index
        self._scanner = policy.scanner()
        self._base = 0
        """Where the text begins that the scanner reads."""
        self._settled = False
        """The scanner's text has ended; more text is another one's."""
        self.fed = 0
        self.clean = 0
        """The text before this offset may go out."""
        self.cut: int | None = None
        """From here on the text is dropped."""
        self.evidence: Evidence | None = None
        self.action: LeakAction | None = None
        """What is done about the leak; None while it is open, and without one."""
        self.repair: Repair | None = None
        self.structured = False
        self.finished = False
        self._told_end = False
        """The upstream gave a finish reason; what it sends all the same can become no call."""

    @property
    def capturing(self) -> bool:
        """Whether a leak is being read to its end, in the hope of repair."""
        return self.evidence is not None and self.action is None

    @property
    def holding(self) -> bool:
        """Whether some of the text is undecided."""
        return self.evidence is None and self.clean < self.fed

    @property
    def shown(self) -> int:
        """How many characters are certain to go out."""
        return self.clean if self.cut is None else min(self.clean, self.cut)

    def skim(self, text: str) -> bool:
        """Read the next text if nothing is open and one look shows that it is clean; otherwise it was not read."""
        if not self._scanner.skim(text):  # nor does it where its text has ended, or some of it is undecided
            return False
        self.fed += len(text)
        self.clean = self.fed
        return True

    def take(self, text: str) -> None:
        """Read the next text of the content."""
        if self.action is not None or (self._settled and self.evidence is not None):
            self.fed += len(text)
            return
        if self._settled:
            self._scanner, self._base, self._settled = self._policy.scanner(), self.fed, False
            self.finished = False
        self.fed += len(text)
        self._look(self._scanner.feed(text))

    def note_structured(self) -> None:
        """The upstream sends real calls: nothing is repaired any more, and what is held may be their residue."""
        self.structured = True
        if self.capturing:
            self.action = LeakAction.SUPPRESSED
        if self.holding:
            self._settle()

    def finish(self, reason: str | None, response_id: str, *, whole: bool = True) -> None:
        """The choice has ended; without *whole*, it broke off."""
        self._settle()
        self.finished = True
        if self.capturing:
            if whole and not (self.structured or self._told_end or reason == FILTERED):
                self.repair = self._policy.repaired(self._scanner, reason, response_id, self._index)
            self.action = LeakAction.SUPPRESSED if self.repair is None else LeakAction.REPAIRED
        self._told_end = self._told_end or reason is not None

    def kept(self, start: int, end: int) -> int:
        """Return how many characters of the text from *start* to *end* go out, once it is decided."""
        return end - start if self.cut is None else max(0, min(end, self.cut) - start)

    def _settle(self) -> None:
        if not self._settled:
            self._settled = True
            self._look(self._scanner.finish(structured=self.structured))

    def _look(self, clean: int) -> None:
        self.clean = self._base + clean
        found = self._scanner.leak
        if found is None or self.evidence is not None:
            return
        self.evidence, self.cut = found, self._base + found.block_start
        if self._policy.mode is LeakMode.OBSERVE:
            self.action = LeakAction.OBSERVED
        elif self.structured or not self._policy.may_repair(found):
            self.action = LeakAction.SUPPRESSED
