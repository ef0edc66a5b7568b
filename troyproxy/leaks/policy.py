"""What is to be done about the leaks of one answer: the mode in force, its options, and what the request asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

from troyproxy.leaks.asked import Asked
from troyproxy.leaks.modes import LeakAction, LeakMode
from troyproxy.leaks.options import Exhausted, Options, Scope
from troyproxy.leaks.repair import Repair, repaired
from troyproxy.leaks.scanner import Evidence, Position, Scanner


@dataclass(frozen=True, slots=True)
class Leak:
    """One leak, for operators: choice index, format id, and what was done."""

    choice: int
    format: str
    action: LeakAction = LeakAction.SUPPRESSED


@dataclass(frozen=True, slots=True)
class Policy:
    """The mode of one answer and what it goes by."""

    mode: LeakMode
    asked: Asked
    options: Options = field(default_factory=Options)
    request_id: str = ""
    """Stands in for the response's id, where the upstream sends none."""

    @property
    def watches(self) -> bool:
        """Whether anything is looked at."""
        return self.mode is not LeakMode.OFF

    @property
    def edits(self) -> bool:
        """Whether an answer may be changed."""
        return self.mode not in {LeakMode.OFF, LeakMode.OBSERVE}

    @property
    def repairs(self) -> bool:
        """Whether a leak that is not failed over may become a real call."""
        if self.asked.only_special:
            return False
        exhausted = self.mode is LeakMode.FAILOVER and self.options.on_exhausted is Exhausted.REPAIR
        return exhausted or self.mode in {LeakMode.REPAIR, LeakMode.AUTO}

    def may_repair(self, evidence: Evidence) -> bool:
        """Whether a leak stands where `repair_scope` lets it become a call."""
        if not self.repairs or evidence.position is Position.ORPHAN:
            return False
        return evidence.position is Position.START or self.options.repair_scope is Scope.ANYWHERE

    def scanner(self) -> Scanner:
        """Return a scanner for one choice."""
        return Scanner(self.asked, self.options)

    def repaired(self, scanner: Scanner, finish: str | None, response_id: str, choice: int) -> Repair | None:
        """Return the calls in the text that *scanner* has captured, if every check passes."""
        if scanner.overflowed:
            return None
        return repaired(
            scanner.captured,
            self.asked,
            self.options,
            finish_reason=finish,
            response_id=response_id or self.request_id,
            choice=choice,
        )
