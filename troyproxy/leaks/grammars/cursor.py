"""A position in a text that may end anywhere: every reader here says *yes*, *no* (`NotThis`) or *unfinished*
(`TextEnded`), so that a cut text is never mistaken for another one.

Comparisons are made on the canonical copy; names, keys and values come from the original.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from troyproxy.leaks.effort import Effort
from troyproxy.leaks.names import begins_name, spelling

BLANKS: Final = re.compile(r"\s*+")


class TextEnded(Exception):
    """The text ends inside what is being read."""


class NotThis(Exception):
    """Something else stands here, or the payload cannot be read."""


@dataclass(frozen=True, slots=True)
class TextCall:
    """One complete call. *arguments* is None when they are no object.

    *typed*: numbers, booleans and null were written as such; else values are raw text, to be read by the schema.
    """

    name: str
    arguments: dict[str, object] | None
    typed: bool = True


@dataclass(slots=True)
class Cursor:
    """Where reading goes on. *canon* has the length of *text*."""

    text: str
    canon: str
    names: frozenset[str]
    at: int = 0
    marked: bool = False  # a marker was read: names need not be declared to be believed
    whole: int = 0  # behind the last call of a list that is not over yet
    open: bool = False  # what was opened last has a closer, and it has not come yet
    effort: Effort = field(default_factory=Effort)

    @property
    def ended(self) -> bool:
        """Whether nothing is left."""
        return self.at >= len(self.text)

    def step(self, steps: int = 1) -> None:
        """Count a part of a call; raise NotThis when the effort is over."""
        self.effort.left -= steps
        if self.effort.left <= 0:
            raise NotThis

    @property
    def char(self) -> str:
        """The next canonical character; raises TextEnded."""
        if self.ended:
            raise TextEnded
        return self.canon[self.at]

    def blanks(self) -> None:
        """Go over blanks."""
        self.match(BLANKS)

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Go over *pattern* (canonical spelling) if it stands here."""
        found = pattern.match(self.canon, self.at)
        if found:
            self.at = found.end()
        return found

    def take(self, literal: str) -> bool:
        """Go over *literal* (canonical) if it stands here; raise TextEnded when only its beginning does."""
        if self.canon.startswith(literal, self.at):
            self.at += len(literal)
            return True
        if len(self.text) - self.at < len(literal) and literal.startswith(self.canon[self.at :]):
            raise TextEnded
        return False

    def expect(self, literal: str) -> None:
        """Go over *literal*, or raise NotThis or TextEnded."""
        if not self.take(literal):
            raise NotThis

    def need(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Go over *pattern* and return its match; raise NotThis, or TextEnded where the text is over."""
        found = self.match(pattern)
        if found is None:
            raise TextEnded if self.ended else NotThis
        return found

    def close(self) -> None:
        """A closer was read: what was opened is shut, and its marker vouches for nothing any more."""
        self.open = self.marked = False

    def name(self, pattern: re.Pattern[str]) -> str:
        """Go over a tool's name and return the tool; raise TextEnded where the text's end may have cut it."""
        raw = self.original(self.need(pattern))
        if self.ended:
            raise TextEnded if self.may_name(raw) else NotThis
        return self.named(raw)

    def may_name(self, raw: str) -> bool:
        """Whether *raw*, which the text's end cuts, may be the beginning of a name that counts here."""
        return self.marked or begins_name(raw, self.names)

    def original(self, found: re.Match[str], group: str | int = 0) -> str:
        """Return what a canonical match stands for in the text."""
        return self.text[slice(*found.span(group))]

    def named(self, raw: str) -> str:
        """Return the tool that *raw* means. Without a marker an undeclared one raises NotThis."""
        known = spelling(raw, self.names)
        if known is None and not self.marked:
            raise NotThis
        return known or raw.strip().strip("\"'")


Grammar = Callable[[Cursor, list[TextCall]], None]
"""Reads from the cursor on and adds calls as they are complete; raises NotThis or TextEnded."""
