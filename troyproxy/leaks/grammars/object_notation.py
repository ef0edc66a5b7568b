"""FunctionGemma's and Gemma 4's ``call:NAME{key:value,…}``: keys without quotes, text between delimiter tokens
(formats F31, F32), and what is left of it when the tokens were stripped."""

from __future__ import annotations

import re
from typing import Final

from troyproxy.leaks.grammars.cursor import Cursor, NotThis, TextCall, TextEnded
from troyproxy.leaks.grammars.json_text import decoded

MAX_DEPTH: Final = 32
_VALUE: Final = 4  # steps that a key and its value are worth
_NAME: Final = re.compile(r"[\w.:-]{1,128}")
_KEY: Final = re.compile(r"(?P<quote>[\"']?)(?P<key>[\w.$-]{1,128})(?P=quote)\s*(?=:|\Z)")
_DELIMITERS: Final = (("<escape>", "<escape>"), ('<|"|>', '<|"|>'))
_BARE: Final = re.compile(r"[^,{}\[\]<>\"]{1,4096}")
_QUOTED: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?P<closed>")?', re.DOTALL)


def called_object(cursor: Cursor, calls: list[TextCall]) -> None:
    """``call:NAME{…}``."""
    cursor.expect("call:")
    name = cursor.name(_NAME)
    cursor.blanks()
    if cursor.char != "{":
        raise NotThis
    reader = _Reader(cursor)
    calls.append(TextCall(name, reader.mapping(1), typed=not reader.escaped))


class _Reader:
    """*escaped*: FunctionGemma puts every value between delimiters, so text there may mean a number."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self.escaped = False

    def mapping(self, depth: int) -> dict[str, object]:
        """Go over ``{…}``."""
        cursor, values = self._cursor, dict[str, object]()
        self._open("{", depth)
        while not cursor.take("}"):
            key = cursor.original(cursor.need(_KEY), "key")
            cursor.blanks()
            cursor.expect(":")
            values.setdefault(key, self._value(depth))
            self._separate("}")
        return values

    def _sequence(self, depth: int) -> list[object]:
        cursor, values = self._cursor, list[object]()
        self._open("[", depth)
        while not cursor.take("]"):
            values.append(self._value(depth))
            self._separate("]")
        return values

    def _open(self, bracket: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise NotThis
        self._cursor.expect(bracket)
        self._cursor.blanks()

    def _separate(self, end: str) -> None:
        cursor = self._cursor
        cursor.blanks()
        if cursor.char != end:
            cursor.expect(",")
            cursor.blanks()

    def _value(self, depth: int) -> object:
        self._cursor.step(_VALUE)
        self._cursor.blanks()
        match self._cursor.char:
            case "{":
                return self.mapping(depth + 1)
            case "[":
                return self._sequence(depth + 1)
            case "<":
                return self._delimited()
            case '"':
                return self._quoted()
        return self._bare()

    def _delimited(self) -> str:
        cursor = self._cursor
        for opener, closer in _DELIMITERS:
            if cursor.take(opener):
                self.escaped |= opener == "<escape>"
                end = cursor.canon.find(closer, cursor.at)
                if end < 0:
                    raise TextEnded
                text = cursor.text[cursor.at : end]
                cursor.at = end + len(closer)
                return text
        raise NotThis

    def _quoted(self) -> object:
        quoted = self._cursor.need(_QUOTED)
        if not quoted["closed"]:
            raise TextEnded
        try:
            return decoded(self._cursor.original(quoted))
        except ValueError as exc:
            raise NotThis from exc

    def _bare(self) -> object:
        text = self._cursor.original(self._cursor.need(_BARE)).strip()
        if not text or self._cursor.ended:
            raise TextEnded if self._cursor.ended else NotThis
        try:
            return decoded(text)
        except ValueError:
            return text
