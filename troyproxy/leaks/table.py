"""Finds which of many spellings stands at a place, and tells *none* from *not yet*: text arrives in pieces."""

from __future__ import annotations

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

    def at(self, canon: str, index: int) -> Row | Look:
        """Return the row that stands at *index* of canonical text; MORE when the text ends inside of one."""
        for end in range(index + 1, len(canon) + 1):
            piece = canon[index:end]
            if piece in self.rows:
                return self.rows[piece]
            if piece not in self.prefixes:
                return Look.NO
        return Look.MORE
