"""What the scanner says about a leak, and about a suspicion."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from troyproxy.leaks.table import Row, Tier


class Position(StrEnum):
    """Where a call was found."""

    START = "start"  # the first thing of the content, or behind the thinking
    LINE = "line"  # after prose, at the start of a line
    MIDDLE = "middle"  # after prose, within a line
    ORPHAN = "orphan"  # only closers, at the end


@dataclass(frozen=True, slots=True)
class Evidence:
    """A leak. *block_start* is the character of the content from which on it is dropped."""

    format: str
    tier: Tier
    position: Position
    name: str | None
    declared: bool
    block_start: int


@dataclass(slots=True)
class Suspect:
    """A call that has begun. *begin* is where dropping would begin, *at* where the call's own text does.

    Without *row* it is a call without a marker; *fence* is what its fence was opened with, if it lies in one.
    """

    position: Position
    begin: int
    at: int
    row: Row | None = None
    fence: str = ""
    inner: int = 0
    """Where the text behind the opening fence begins, counted from *at*."""
    format: str = ""
    name: str = ""
    declared: bool = False

    @property
    def tier(self) -> Tier:
        """How sure its marker makes us."""
        if self.position is Position.ORPHAN:
            return Tier.MARKUP
        return self.row.tier if self.row else Tier.BARE

    @property
    def whole(self) -> bool:
        """Whether it is a leak only when nothing else stands in the message."""
        return self.row is None or bool(self.fence)

    def evidence(self) -> Evidence:
        """Return it as a leak."""
        return Evidence(self.format, self.tier, self.position, self.name or None, self.declared, self.begin)
