"""What may follow a leaked call: blanks, closers, stop tokens, more calls, an invented tool result. Nothing else.

A server that stops at a real call sends nothing behind it, so this costs no recall; it separates "quoted, then
explained" from "leaked".
"""

from __future__ import annotations

from typing import Final

from troyproxy.leaks.formats import canonical
from troyproxy.leaks.heads import read_head, skip_blanks, skip_suffix, tag_end
from troyproxy.leaks.table import Look, Row, Sort
from troyproxy.leaks.tables import TAIL, spelled


def tail_fits(raw: str, canon: str, index: int) -> bool:
    """Whether the text from *index* on is, or may become, such a tail."""
    while True:
        index = skip_blanks(canon, index)
        if index == len(canon):
            return True
        row = spelled(TAIL, canon, index, raw)
        if not isinstance(row, Row):
            return row is Look.MORE
        behind = tag_end(canon, index, row.text)
        if isinstance(behind, Look):
            return behind is Look.MORE
        index = behind
        if row.sort is Sort.RESULT:
            return True
        if row.sort is Sort.OPENER:
            return read_head(raw, canon, index, row.follow).look is not Look.NO
        if row.text.endswith(":"):
            index = skip_suffix(canon, index)


def residue(raw: str) -> Row | None:
    """Return the first marker of a text that is nothing but markers and blanks, else None.

    Such a text beside structured calls is the shell that a server's parser left; it may lack its last character.
    """
    canon = canonical(raw)
    index, first = skip_blanks(canon, 0), None
    while index < len(canon):
        row = spelled(TAIL, canon, index, raw)
        if not isinstance(row, Row):
            return first or _stem(canon, index) if _stem(canon, index) else None
        first, behind = first or row, tag_end(canon, index, row.text)
        if isinstance(behind, Look):
            return first if behind is Look.MORE else None
        index = skip_blanks(canon, behind)
    return first


def _stem(canon: str, index: int) -> Row | None:
    """``<function`` and ``<tool_call`` without their end are left by some parsers."""
    stems = {"<function": "F01", "<tool_call": "F03"}
    rest = canon[index:].rstrip()
    return Row(rest, Sort.OPENER, stems[rest]) if rest in stems else None


def without_stops(text: str) -> str:
    """Return *text* without blanks and stop tokens at its end."""
    canon, end = canonical(text), len(text.rstrip())
    while stop := next((stop for stop in _STOPS if canon.endswith(stop, 0, end)), ""):
        end -= len(stop)
        while end and text[end - 1].isspace():
            end -= 1
    return text[:end]


_STOPS: Final = tuple(row.text for row in TAIL.rows.values() if row.sort is Sort.STOP)
