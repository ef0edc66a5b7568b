"""What stands between calls: blanks, wrappers that open and close, stop tokens, fences, an invented result."""

from __future__ import annotations

import re
from typing import Final

from troyproxy.leaks.grammars.cursor import BLANKS, Cursor
from troyproxy.leaks.grammars.harmony import over_aside
from troyproxy.leaks.grammars.tokens import (
    CLOSER,
    FENCE,
    FENCE_INFOS,
    OPENER,
    PLAIN,
    RESULT,
    STOP,
    begins,
    cut_closer,
    cut_token,
)

_SEPARATORS: Final = re.compile(r"[;\s]*+")
_UPPER_CASE_ONLY: Final = "<TOOLCALL>"


class Gap:
    """Goes over the gaps of one text and keeps what they say."""

    def __init__(self, cursor: Cursor, extra: tuple[str, ...] = ()) -> None:
        """*extra* are more openers, in canonical spelling; they do not vouch for a name."""
        self._cursor = cursor
        self._extra = extra
        self._fenced = False
        self.opened = False  # an opener was read, and no call behind it yet
        self.over = False  # an invented result follows: nothing behind it counts
        self.end = 0  # behind the last call and what closes it

    def skip(self, *, started: bool) -> bool:
        """Go to where the next call may begin; return whether the text ends where one is expected.

        *started*: a call was read before.
        """
        cursor, self.opened, self.end = self._cursor, False, self._cursor.at
        while self._step(started=started):
            if not self.opened:
                self.end = cursor.at
        if cursor.ended or self.over:
            return self.opened
        if started and not self.opened and cut_closer(cursor.canon, cursor.at):
            self.end = cursor.at = len(cursor.text)
            return False
        if cursor.canon.endswith("(", cursor.at) and cursor.at == len(cursor.canon) - 1:
            return self.opened or not started  # behind a call it may be anything
        return cut_token(cursor.canon, cursor.at) or any(begins(text, cursor.canon, cursor.at) for text in self._extra)

    def _step(self, *, started: bool) -> bool:
        """Go over one piece; return whether there was one."""
        cursor, before = self._cursor, self._cursor.at
        cursor.effort.spend(1)
        if cursor.effort.over:
            return False
        cursor.match(_SEPARATORS if started and not self.opened else BLANKS)
        if cursor.at > before:
            return True
        if started and not self.opened and cursor.match(RESULT):
            cursor.at, self.over = len(cursor.text), True
            return True
        return self._close() or self._open() or self._open_weakly() or self._fence() or self._aside(started=started)

    def _close(self) -> bool:
        cursor = self._cursor
        if cursor.match(CLOSER) or cursor.match(STOP):
            cursor.close()
            self.opened = False
            return True
        return False

    def _open(self) -> bool:
        cursor, start = self._cursor, self._cursor.at
        found = cursor.match(OPENER)
        if found is None:
            return False
        if found["toolcall"] and cursor.original(found) != _UPPER_CASE_ONLY:
            cursor.at = start
            return False
        self.opened = cursor.marked = True
        cursor.open = not found["endless"]
        return True

    def _open_weakly(self) -> bool:
        cursor = self._cursor
        extra = next((opener for opener in self._extra if cursor.canon.startswith(opener, cursor.at)), "")
        cursor.at += len(extra)
        found = bool(extra) or cursor.match(PLAIN) is not None
        self.opened |= found
        return found

    def _fence(self) -> bool:
        cursor, start = self._cursor, self._cursor.at
        found = cursor.match(FENCE)
        if found is None or found["info"] not in FENCE_INFOS:
            cursor.at = start
            return False
        self._fenced = not self._fenced
        self.opened = self._fenced
        return True

    def _aside(self, *, started: bool) -> bool:
        return not started and over_aside(self._cursor)
