"""Reads prose: where a call may begin outside of code, where thinking ends, and which closers have no opener.

It keeps places, not text. The scanner owns the text that is not yet released and asks how much of it may go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from troyproxy.leaks.effort import Effort
from troyproxy.leaks.evidence import Position, Suspect
from troyproxy.leaks.markdown import Markdown
from troyproxy.leaks.table import Look, Row, Sort
from troyproxy.leaks.tables import Tables, is_element, spelled

_MOST_CLOSERS: Final = 512  # characters of closers and blanks that are held for the orphan rule
_QUOTES: Final = frozenset("\"'`\u201c\u201d\u2018\u2019\u201e\u00ab\u00bb")


@dataclass(slots=True)
class Prose:
    """All places are offsets into the content; *skip* = no call begins before it."""

    tables: Tables
    effort: Effort = field(default_factory=Effort)
    at: int = 0
    skip: int = 0
    before: str = ""
    """The character before the text that is held."""
    closers_at: int = -1
    """Where a run of closers began that nothing but blanks follows; -1 = there is none."""
    closers: int = 0
    opened: bool = False
    """An element of a call was opened somewhere: no closer is an orphan."""
    thought: bool = False
    """The thinking has ended once."""
    markdown: Markdown = field(init=False)
    suspect: Suspect | None = None
    restart: bool = False
    """Thinking ended at *at*: the content starts again."""

    def __post_init__(self) -> None:
        """Begin."""
        self.markdown = Markdown(effort=self.effort)

    def restarted(self, at: int) -> None:
        """The content starts (again) at *at*."""
        self.at, self.skip, self.restart, self.suspect = at, at, False, None
        self.closers_at, self.closers, self.markdown = -1, 0, Markdown(effort=self.effort)

    def passed(self, text: str) -> None:
        """Text without any spelling has gone by."""
        self.markdown.read(text)
        self.at, self.before = self.at + len(text), text[-1]

    def read(self, raw: str, canon: str, base: int) -> int:
        """Read on in the held text, which begins at *base*; return the offset of what must still be held.

        Afterwards *suspect* or *restart* may be set: then reading has stopped there.
        """
        index, end, effort = self.at - base, len(canon), self.effort
        while index < end and self.suspect is None and not self.restart and effort.left > 0:
            found = self.tables.first.search(canon, index)
            stop = found.start() if found else end
            if stop > index:
                self._stretch(canon[index:stop])
                index = stop
            if found:
                index = self._spelling(raw, canon, stop, base)
                if index == stop:  # a spelling goes on behind the end of the text, or a call begins
                    break
        self.at = base + index
        return self.at if self.closers_at < 0 else self.closers_at

    def _stretch(self, text: str) -> None:
        self.markdown.read(text)
        if not text.isspace():
            self.closers_at = -1

    def _character(self, index: int) -> int:
        self.markdown.text()
        self.closers_at = -1
        return index + 1

    def _spelling(self, raw: str, canon: str, index: int, base: int) -> int:
        row = spelled(self.tables.prose, canon, index, raw)
        if row is Look.MORE:
            return index
        self.effort.left -= 1
        self.opened = self.opened or is_element(canon, index)
        if not isinstance(row, Row):
            return self._character(index)
        if row.sort is Sort.CLOSER and not self.markdown.masked():
            return self._closer(index, base, row)
        if row.sort is Sort.THOUGHT and not self.thought:
            self.thought = self.restart = True
            return index + len(row.text)
        if row.sort is Sort.OPENER:
            return self._opener(raw, index, base, row)
        self.opened = self.opened or row.sort is Sort.MARK
        return self._character(index)

    def _closer(self, index: int, base: int, row: Row) -> int:
        if self.closers_at < 0 or base + index + len(row.text) - self.closers_at > _MOST_CLOSERS:
            self.closers_at, self.closers = base + index, 0
        self.closers += 1
        self.markdown.text()
        return index + len(row.text)

    def _opener(self, raw: str, index: int, base: int, row: Row) -> int:
        masked, line = self.markdown.masked(), self.markdown.line_start
        quoted = (raw[index - 1] if index else self.before) in _QUOTES
        self.opened = True
        after = self._character(index)
        if masked or quoted or base + index < self.skip:
            return after
        self.suspect = Suspect(Position.LINE if line else Position.MIDDLE, base + index, base + index, row)
        return index

    def let_go(self, end: int) -> None:
        """Forget a run of closers that has become too long; *end* is where the text ends."""
        if 0 <= self.closers_at < end - _MOST_CLOSERS:
            self.closers_at = -1

    @property
    def is_orphan(self) -> bool:
        """Whether the content, should it end here, ends in closers that nothing opened."""
        return self.closers_at >= 0 and self.closers >= 2 and not self.opened
