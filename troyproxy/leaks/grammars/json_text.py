"""JSON in the middle of a text. The end is found by following strings, so a closer inside a string is no closer."""

from __future__ import annotations

import json
import math
import re
from typing import Final

from troyproxy.leaks.effort import Effort
from troyproxy.leaks.grammars.cursor import Cursor, NotThis, TextEnded

MAX_DEPTH: Final = 64
_MARK: Final = re.compile(r'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+(["{}\[\]])', re.DOTALL)
"""The next bracket outside of strings; a quotation mark there begins a string that does not end."""
_CLOSES: Final = {"{": "}", "[": "]"}


def _first_wins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A parameter given twice keeps its first value: a streaming parser would have sent that one."""
    values: dict[str, object] = {}
    for key, value in pairs:
        values.setdefault(key, value)
    return values


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(digits)
    return number


def _no_constant(name: str) -> object:
    raise ValueError(name)


# Raw newlines inside strings are allowed: models write them.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_first_wins, parse_float=_finite, parse_constant=_no_constant, strict=False
)


def json_end(text: str, at: int, effort: Effort | None = None) -> int:
    """Return the end of the object or array that begins at *at*; raise TextEnded or NotThis."""
    awaited: list[str] = []
    effort = effort or Effort()
    while (mark := _MARK.match(text, at)) and mark[1] != '"':
        effort.left -= 1
        token, at = mark[1], mark.end()
        if effort.left <= 0:
            raise NotThis
        if token in _CLOSES:
            awaited.append(_CLOSES[token])
            if len(awaited) > MAX_DEPTH:
                raise NotThis
        elif token != awaited.pop():
            raise NotThis
        elif not awaited:
            return at
    raise TextEnded


def decoded(text: str) -> object:
    """Return the value of a JSON text: finite numbers only, first of doubled keys. Raises ValueError."""
    return _DECODER.decode(text)


def json_value_in(text: str) -> object:
    """Return the object or array that *text* is, blanks aside; None when it is neither."""
    text = text.strip()
    try:
        return decoded(text) if text.startswith(tuple(_CLOSES)) and json_end(text, 0) == len(text) else None
    except (ValueError, NotThis, TextEnded):
        return None


def read_object(cursor: Cursor) -> dict[str, object]:
    """Go over the JSON object that begins here and return it."""
    if cursor.char != "{":
        raise NotThis
    _check_first_key(cursor)
    end = json_end(cursor.text, cursor.at, cursor.effort)
    try:
        value: dict[str, object] = _DECODER.decode(cursor.text[cursor.at : end])
    except ValueError as exc:
        raise NotThis from exc
    cursor.at = end
    return value


def _check_first_key(cursor: Cursor) -> None:
    """Braces that hold no JSON are seen at once, however long the text is."""
    ahead = Cursor(cursor.text, cursor.canon, cursor.names, cursor.at + 1)
    ahead.blanks()
    if ahead.char not in '"}':
        raise NotThis
