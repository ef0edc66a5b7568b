"""Values without escaping, ended by a closer. They may quote that closer, so the first one is provisional: a value
ends where the markup goes on behind the closer, and is never cut at one inside it."""

from __future__ import annotations

import re
from typing import Final

from troyproxy.leaks.grammars.cursor import BLANKS, Cursor, TextEnded
from troyproxy.leaks.grammars.tokens import CLOSER, OPENER, STOP, cut_tag

_LINE_ENDS: Final = re.compile(r"\A\r?\n|\r?\n\Z")


def goes_on(canon: str, at: int, *more: re.Pattern[str]) -> bool:
    """Whether structure stands at *at*, blanks aside: one of *more*, an opener, a closer, or the end of the text."""
    at = over_blanks(canon, at)
    if at >= len(canon) or cut_tag(canon, at):
        return True
    return any(pattern.match(canon, at) for pattern in (*more, OPENER, CLOSER, STOP))


def read_value(cursor: Cursor, closer: re.Pattern[str], follow: re.Pattern[str]) -> str:
    """Go over a value and its *closer*, and return it without the one newline templates put at each side."""
    start = cursor.at
    for end in closer.finditer(cursor.canon, start):
        cursor.step()
        if goes_on(cursor.canon, end.end(), follow):
            cursor.at = end.end()
            return without_line_ends(cursor.text[start : end.start()])
    raise TextEnded


def without_line_ends(value: str) -> str:
    """Return *value* without one newline at each side."""
    return _LINE_ENDS.sub("", value)


def over_blanks(canon: str, at: int) -> int:
    """Return where the blanks that begin at *at* end."""
    found = BLANKS.match(canon, at)
    return found.end() if found else at
