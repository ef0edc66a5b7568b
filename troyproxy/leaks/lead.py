"""Reads the very start of the content: blanks, stray headers and empty shells are skipped, then a call may begin."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from troyproxy.leaks.bare import bare_head, fence
from troyproxy.leaks.effort import Effort
from troyproxy.leaks.evidence import Position, Suspect
from troyproxy.leaks.heads import Head, read_head, skip_blanks, skip_suffix, tag_end
from troyproxy.leaks.options import Options
from troyproxy.leaks.table import Look, Row, Sort
from troyproxy.leaks.tables import CLASSIC, Ends, Tables, spelled


class Turn(StrEnum):
    """Where reading goes on."""

    WAIT = "wait"
    PROSE = "prose"
    THINK = "think"  # behind what opened a think block
    THOUGHT = "thought"  # behind what ended one that a template opened
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Lead:
    """Indexes into the held text: *at*, where reading stopped; *end*, where what was found there ends."""

    turn: Turn
    at: int = 0
    end: int = 0
    row: Row | None = None
    suspect: Suspect | None = None


_TURNS: Final = {Sort.THINK: Turn.THINK, Sort.THOUGHT: Turn.THOUGHT}


def read_classic(canon: str, options: Options) -> Suspect | Look:
    """Read the start of the content by the rule of the older guard: NO, MORE, or what is a leak."""
    index = len(canon) - len(canon.lstrip())
    row = CLASSIC.at(canon, index)
    if index >= options.header_chars:
        return Look.NO
    if isinstance(row, Row):
        found = Suspect(Position.START, 0, index, row, format=row.format)
        return found if options.looks_for(row.format) else Look.NO
    return row


def read_lead(raw: str, canon: str, index: int, base: int, tables: Tables) -> Lead:
    """Read from *index* of the held text, which begins at *base*."""
    while True:
        index = skip_blanks(canon, index)
        if index == len(canon):
            return Lead(Turn.WAIT, index)
        row = spelled(tables.lead, canon, index, raw)
        if row is Look.MORE:
            return Lead(Turn.WAIT, index)
        if not isinstance(row, Row):
            return _without_marker(raw, canon, index, base, tables)
        end = index + len(row.text)
        if row.sort not in (Sort.CLOSER, Sort.ROLE):
            return _behind(row, index, end, base)
        index = end


def read_thoughts(canon: str, index: int, ends: Ends, effort: Effort) -> tuple[int, Row | Look]:
    """Read a think block from *index* on; return where its end stands, or up to where nothing of it does."""
    while effort.left > 0 and (found := ends.first.search(canon, index)):
        row = ends.table.at(canon, found.start())
        if row is not Look.NO:
            return found.start(), row
        index = found.start() + 1
        effort.left -= 1
    return len(canon), Look.NO


def head_of(suspect: Suspect, raw: str, canon: str, base: int, names: frozenset[str]) -> Head:
    """Read the head of a call that has begun in the held text."""
    index = suspect.at - base + suspect.inner
    if suspect.row is None:
        return bare_head(raw, canon, index, names, fenced=bool(suspect.fence))
    behind = tag_end(canon, index, suspect.row.text)
    if isinstance(behind, Look):
        return Head(behind)
    if suspect.row.text.endswith(":") and suspect.row.text.startswith("<"):
        behind = skip_suffix(canon, behind)
    return read_head(raw, canon, behind, suspect.row.follow)


def shell_end(suspect: Suspect, canon: str, base: int, tables: Tables) -> int | None:
    """Return where an opener that is closed at once ends, in the held text; None = it is none, -1 = not yet known.

    A server that parsed the call away may leave the empty shell; what follows it is the start of the content again.
    """
    if suspect.row is None or suspect.fence:
        return None
    behind = tag_end(canon, suspect.at - base, suspect.row.text)
    if isinstance(behind, Look):
        return None
    index = skip_blanks(canon, behind)
    found = tables.lead.at(canon, index)
    if isinstance(found, Row):
        return index + len(found.text) if found.sort is Sort.CLOSER else None
    return -1 if found is Look.MORE else None


def _behind(row: Row, index: int, end: int, base: int) -> Lead:
    if row.sort is Sort.OPENER:
        return Lead(Turn.CALL, index, end, row, Suspect(Position.START, base, base + index, row))
    return Lead(_TURNS.get(row.sort, Turn.PROSE), index, end, row)


def _without_marker(raw: str, canon: str, index: int, base: int, tables: Tables) -> Lead:
    """A fence that begins with a call, or a call without any marker."""
    suspect = Suspect(Position.START, base, base + index)
    if canon[index] not in "`~":
        return Lead(Turn.CALL, index, suspect=suspect)
    look, suspect.fence, inside = fence(canon, index)
    if look is not Look.YES:
        return Lead(Turn.WAIT if look is Look.MORE else Turn.PROSE, index)
    inside = skip_blanks(canon, inside)
    if inside == len(canon):
        return Lead(Turn.WAIT, inside)  # blanks count towards the bound, here too
    row = spelled(tables.lead, canon, inside, raw)
    if row is Look.MORE:
        return Lead(Turn.WAIT, index)
    suspect.inner = inside - index
    suspect.row = row if isinstance(row, Row) and row.sort is Sort.OPENER else None
    return Lead(Turn.CALL, inside, suspect=suspect)
