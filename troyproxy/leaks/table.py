"""Finds which of many spellings stands at a place, and tells *none* from *not yet*: text arrives in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Look(StrEnum):
    """MORE is an answer of its own: a *no* to an unfinished spelling is how leaks slip through."""

    NO = "no"
    MORE = "more"
    YES = "yes"


class Tier(StrEnum):
    """How sure a spelling alone makes us."""

    SPECIAL = "S"  # the spelling of a special token: nobody types it by hand
    MARKUP = "X"  # looks like ordinary markup: the tool must be a declared one
    BARE = "J"  # no marker at all: only a whole message counts


class Sort(StrEnum):
    """What a spelling is good for."""

    OPENER = "opener"
    CLOSER = "closer"
    THINK = "think"  # a think block begins
    THOUGHT = "thought"  # a think block ends
    ROLE = "role"  # a stray header in front of the content
    MARK = "mark"  # half of an element: its closer is no orphan
    STOP = "stop"
    RESULT = "result"  # an invented tool result
    PART = "part"  # stands inside a call


class Follow(StrEnum):
    """What has to follow an opener."""

    CALL = "call"  # blanks, then JSON with a name, a bare name, or one more opener
    NAME = "name"  # the name, as in an attribute
    CODE = "code"  # anything


@dataclass(frozen=True, slots=True)
class Row:
    """One spelling in canonical form; *format* is the id under which a leak is counted."""

    text: str
    sort: Sort
    format: str = ""
    tier: Tier = Tier.MARKUP
    follow: Follow = Follow.CALL
    exact: str = ""
    """The original must read like this; empty = any case."""
    ends: str = ""
    """With THINK: the closer of the block."""


class Table:
    """No row's text is a strict prefix of another one (tested), so the first full match is final."""

    def __init__(self, rows: Iterable[Row]) -> None:
        """Later rows do not replace earlier ones of the same text."""
        self.rows: Final[dict[str, Row]] = {}
        for row in rows:
            self.rows.setdefault(row.text, row)
        self.prefixes: Final = frozenset(text[:end] for text in self.rows for end in range(len(text)))
        self._longest = max(map(len, self.rows), default=0)
        self._pattern: re.Pattern[str] | None = None

    def at(self, canon: str, index: int) -> Row | Look:
        """Return the row that stands at *index* of canonical text; MORE when the text ends inside of one.

        It takes one look, however many rows there are and however long they are.
        """
        pattern = self._pattern
        if pattern is None:  # most tables of a process are never asked
            pattern = self._pattern = re.compile(_one_of(set(self.rows)))
        if found := pattern.match(canon, index):
            return self.rows[found[0]]
        near = len(canon) - index < self._longest
        return Look.MORE if near and canon[index:] in self.prefixes else Look.NO


def _one_of(texts: set[str]) -> str:
    """Return a pattern of the shortest of *texts* that stands there; what they have in common is looked at once."""
    common = _common(texts)
    rests = {text[len(common) :] for text in texts}
    if "" in rests:
        return re.escape(common)
    firsts = sorted({rest[0] for rest in rests})
    branches = "|".join(_one_of({rest for rest in rests if rest[0] == first}) for first in firsts)
    return rf"{re.escape(common)}(?:{branches})"


def _common(texts: set[str]) -> str:
    """Return what all *texts* begin with."""
    first, last = min(texts), max(texts)
    end = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[:end]
