"""Calls whose arguments are keys and raw values: ``<arg_key>K</arg_key><arg_value>V</arg_value>`` and
``<|tool_arg:start|>K<|tool_arg:value|>V<|tool_arg:end|>`` (formats F23, F24, F40). The name was read before."""

from __future__ import annotations

import re
from typing import Final

from troyproxy.leaks.grammars.cursor import Cursor, NotThis, TextEnded
from troyproxy.leaks.grammars.tokens import CLOSER, OPENER, STOP, cut_tag
from troyproxy.leaks.grammars.values import read_value

_SUFFIX: Final = r"(?::[\w-]{1,32})?"
KEY: Final = re.compile(rf"<arg_key{_SUFFIX}>|<\|tool_arg:start\|>")
_KEY_TEXT: Final = re.compile(r"[^<]{1,256}")
_BETWEEN: Final = re.compile(rf"</arg_key{_SUFFIX}>\s*<arg_value{_SUFFIX}>|<\|tool_arg:value\|>")
_CUT_BETWEEN: Final = re.compile(rf"</arg_key{_SUFFIX}>\s*(?:<[\w:-]{{0,48}})?\Z")
_VALUE_END: Final = re.compile(rf"</arg_value{_SUFFIX}>|<\|tool_arg:end\|>")


def read_pairs(cursor: Cursor) -> dict[str, object]:
    """Go over keys and values up to the call's closer; the next call or a stop token closes it too."""
    values: dict[str, object] = {}
    while True:
        cursor.step()
        cursor.blanks()
        if cursor.match(KEY):
            key = _key(cursor)
            values.setdefault(key, read_value(cursor, _VALUE_END, KEY))
        elif cursor.match(CLOSER):
            cursor.close()
            return values
        elif any(pattern.match(cursor.canon, cursor.at) for pattern in (OPENER, STOP)):
            cursor.open = True
            return values
        else:
            raise TextEnded if cursor.ended or cut_tag(cursor.canon, cursor.at) else NotThis


def _key(cursor: Cursor) -> str:
    key = cursor.original(cursor.need(_KEY_TEXT)).strip()
    if cursor.match(_BETWEEN) is None:
        cut = cursor.ended or cut_tag(cursor.canon, cursor.at) or _CUT_BETWEEN.match(cursor.canon, cursor.at)
        raise TextEnded if cut else NotThis
    return key
