"""Kimi K3's tools channel: ``<|open|>call tool="N"<|sep|>`` with typed ``argument`` elements inside (format F22)."""

from __future__ import annotations

import re
from typing import Final

from troyproxy.leaks.grammars.cursor import Cursor, NotThis, TextCall, TextEnded
from troyproxy.leaks.grammars.json_text import decoded

_OPEN: Final = "<|open|>"
_CALL: Final = re.compile(r"call(?P<attributes>(?:\s+\w{1,32}=\"[^\"\n]{0,256}\"){1,4})\s*<\|sep\|>")
_ARGUMENT: Final = re.compile(r"argument(?P<attributes>(?:\s+\w{1,32}=\"[^\"\n]{0,256}\"){1,4})\s*<\|sep\|>")
_ATTRIBUTE: Final = re.compile(r"(\w{1,32})=\"([^\"\n]{0,256})\"")
_CUT: Final = re.compile(r"[a-z][^<\n]{0,600}(?:<\|?(?:s(?:e(?:p\|?)?)?)?)?\Z")
_CALL_END: Final = "<|close|>call<|sep|>"
_ARGUMENT_END: Final = "<|close|>argument<|sep|>"


def channel_call(cursor: Cursor, calls: list[TextCall]) -> None:
    """One call of the channel."""
    cursor.expect(_OPEN)
    cursor.marked = True
    name = _attributes(cursor, _CALL).get("tool", "")
    arguments: dict[str, object] = {}
    cursor.blanks()
    while not cursor.take(_CALL_END):
        cursor.step()
        cursor.expect(_OPEN)
        given = _attributes(cursor, _ARGUMENT)
        arguments.setdefault(given.get("key", ""), _value(cursor, given.get("type")))
        cursor.blanks()
    calls.append(TextCall(cursor.named(name), arguments))
    cursor.close()


def _attributes(cursor: Cursor, pattern: re.Pattern[str]) -> dict[str, str]:
    if cursor.ended:
        raise TextEnded
    found = cursor.match(pattern)
    if found is None:
        raise TextEnded if _CUT.match(cursor.canon, cursor.at) else NotThis
    return {
        key: value.replace("&quot;", '"').replace("&amp;", "&")
        for key, value in _ATTRIBUTE.findall(cursor.original(found, "attributes"))
    }


def _value(cursor: Cursor, kind: str | None) -> object:
    end = cursor.canon.find(_ARGUMENT_END, cursor.at)
    if end < 0:
        raise TextEnded
    text = cursor.text[cursor.at : end]
    cursor.at = end + len(_ARGUMENT_END)
    if kind == "string":
        return text
    try:
        return decoded(text)
    except ValueError as exc:
        raise NotThis from exc
