"""Calls written as elements: ``<function=N>``, ``(function=N>``, ``<function(N)>``, ``<function name="N">``,
``<PREFIX invoke name="N">`` with JSON or ``<parameter…>`` / ``<param…>`` inside (formats F01, F02, F04, F05, F19, F20,
F25, F27, F41-F44).

One grammar for all prefixes and mixtures. Values are raw: no entities; only ``<param>`` knows CDATA.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from troyproxy.leaks.grammars.cursor import Cursor, NotThis, TextCall, TextEnded
from troyproxy.leaks.grammars.json_text import decoded, read_object
from troyproxy.leaks.grammars.tokens import CLOSER, OPENER, PREFIX, STOP, cut_tag, cut_token
from troyproxy.leaks.grammars.values import goes_on, over_blanks, read_value, without_line_ends

HEAD: Final = re.compile(rf"(?:<{PREFIX}|\((?=function=))(?:function|invoke)(?=[\s=(>])")
_NAMED_BY: Final = re.compile(r"\s*(?:=|\(|name\s*=)\s*")
_CUT_NAMED_BY: Final = re.compile(r"\s*+(?:(?:n(?:a(?:me?)?)?)?\s*|(?:=|\(|name\s*=)\s*[\"']?)\Z")
_NAME: Final = re.compile(r"[\"']?(?P<name>[^\s\"'<>(){}|/,]{1,128})[\"'|]{0,2}")
_HEAD_END: Final = re.compile(r"[\s,]*\)?\s*(?P<shut>/?>)?\s*\(?\s*")
_JSON_END: Final = re.compile(r"\s*\)?\s*>?")
_BRACKET_END: Final = re.compile(r"\s*(?:</function>\s*)?\)")
_END: Final = re.compile(rf"</{PREFIX}(?:function|invoke)>")
_PARAMETER: Final = re.compile(
    rf"<{PREFIX}(?P<kind>parameter|param)(?:\s*+=\s*+|\s++name\s*+=\s*+)[\"']?(?P<key>[^\"'<>|\n]{{1,128}}?)[\"'|\s]{{0,8}}"
    r"(?:string\s*+=\s*+[\"']?(?P<string>true|false)[\"'|\s]{0,8})?>"
)
_PARAMETER_END: Final = re.compile(rf"</{PREFIX}(?:parameter|param)>")
_VALUE_ENDS: Final = re.compile(f"(?P<close>{_PARAMETER_END.pattern})|(?P<end>{_END.pattern})|<{PREFIX}param")
_CDATA: Final = re.compile(r"\s*<!\[cdata\[")
_NO_END: Final = re.compile("")
_LEGACY_NAME: Final = re.compile(r"[^\s<>]{1,128}")
_LEGACY_KEY: Final = re.compile(r"<(?P<key>[^\s<>/\"'=]{1,128})>")
_LEGACY_END: Final = re.compile(r"</parameters>\s*")


@dataclass(slots=True)
class _Parameters:
    """*lost* = a value's closer was missing; *quoting* = a value holds a closer. Both at once: nobody can tell."""

    values: dict[str, object] = field(default_factory=dict)
    typed: bool = False
    lost: bool = False
    quoting: bool = False


def element(cursor: Cursor, calls: list[TextCall]) -> None:
    """One element that is a call."""
    in_bracket = cursor.char == "("
    if cursor.match(HEAD) is None:
        raise TextEnded if cut_token(cursor.canon, cursor.at) else NotThis
    cursor.marked = True
    if cursor.canon.startswith(">", cursor.at):
        calls.append(_legacy(cursor))
        return
    if _CUT_NAMED_BY.match(cursor.canon, cursor.at):
        raise TextEnded
    cursor.need(_NAMED_BY)
    name = cursor.original(cursor.need(_NAME), "name")
    shut = cursor.need(_HEAD_END)["shut"] or ""
    if not in_bracket:
        calls.append(_body(cursor, cursor.named(name), shut))
    elif shut == ">" or cursor.ended:
        calls.append(_bracketed(cursor, cursor.named(name), shut))
    else:
        raise NotThis


def _bracketed(cursor: Cursor, name: str, shut: str) -> TextCall:
    """``(function=N>{…}</function>)``, of which either end may be missing."""
    call = _body(cursor, name, shut, _NO_END)
    if cursor.match(_BRACKET_END):
        cursor.close()
    return call


def _body(cursor: Cursor, name: str, shut: str, json_end: re.Pattern[str] = _JSON_END) -> TextCall:
    if shut == "/>":
        cursor.close()
        return TextCall(name, {})
    if cursor.char == "{":
        arguments = read_object(cursor)
        cursor.open = True
        cursor.match(json_end)
        return TextCall(name, arguments)
    if not shut:
        raise NotThis
    read = _parameters(cursor)
    if read.lost and read.quoting:
        raise NotThis
    return TextCall(name, read.values, read.typed)


def _parameters(cursor: Cursor) -> _Parameters:
    read = _Parameters()
    while True:
        cursor.step()
        cursor.blanks()
        opened = cursor.match(_PARAMETER)
        if opened:
            key = cursor.original(opened, "key").strip()
            read.values.setdefault(key, _value(cursor, opened, read))
        elif cursor.match(_END):
            cursor.close()
            cursor.open = read.lost  # the text may have been cut behind a quoted closer
            return read
        elif read.values and _ends_here(cursor):
            cursor.open = True
            return read
        else:
            raise TextEnded if cursor.ended or cut_tag(cursor.canon, cursor.at) else NotThis


def _ends_here(cursor: Cursor) -> bool:
    """Whether the next call, an outer closer or a stop token ends an element that lacks its own closer."""
    return any(pattern.match(cursor.canon, cursor.at) for pattern in (HEAD, CLOSER, OPENER, STOP))


def _value(cursor: Cursor, opened: re.Match[str], read: _Parameters) -> object:
    if opened["kind"] == "param" and cursor.match(_CDATA):
        return _cdata(cursor)
    if opened["string"]:
        read.typed = True
        return _typed(cursor, opened["string"])
    return _raw(cursor, read)


def _raw(cursor: Cursor, read: _Parameters) -> str:
    """A raw value: up to a closer behind which the markup goes on, else to what shows that the closer was lost."""
    start = cursor.at
    for end in _VALUE_ENDS.finditer(cursor.canon, start):
        cursor.step()
        if end["close"] and goes_on(cursor.canon, end.end(), _PARAMETER, HEAD):
            cursor.at = end.end()
        elif end["close"] or not _shows_loss(cursor, start, end):
            read.quoting = True
            continue
        else:
            cursor.at, read.lost = end.start(), True
        return without_line_ends(cursor.text[start : end.start()])
    raise TextEnded


def _shows_loss(cursor: Cursor, start: int, end: re.Match[str]) -> bool:
    """Whether a value that began at *start* was left open before *end*: the element's end, or a parameter's start."""
    if end["end"]:
        return goes_on(cursor.canon, end.end(), HEAD)
    if cursor.text[end.start() - 1] != "\n" or end.start() <= over_blanks(cursor.canon, start):
        return False
    return _PARAMETER.match(cursor.canon, end.start()) is not None


def _cdata(cursor: Cursor) -> str:
    end = cursor.text.find("]]>", cursor.at)
    if end < 0:
        raise TextEnded
    value = cursor.text[cursor.at : end]
    cursor.at = end + len("]]>")
    cursor.blanks()
    _need(cursor, _PARAMETER_END)
    return value


def _typed(cursor: Cursor, is_string: str) -> object:
    """A value whose tag says whether it is text or JSON."""
    value = read_value(cursor, _PARAMETER_END, _VALUE_FOLLOW)
    if is_string == "true":
        return value
    try:
        return decoded(value)
    except ValueError as exc:
        raise NotThis from exc


_VALUE_FOLLOW: Final = re.compile(f"{_PARAMETER.pattern}|{HEAD.pattern}")


def _legacy(cursor: Cursor) -> TextCall:
    """``<invoke><tool_name>N</tool_name><parameters><K>V</K>…</parameters></invoke>``."""
    _tags(cursor, ">", "<tool_name>")
    name = cursor.named(cursor.original(cursor.need(_LEGACY_NAME)))
    _tags(cursor, "</tool_name>", "<parameters>")
    values: dict[str, object] = {}
    while not cursor.match(_LEGACY_END):
        cursor.step()
        opened = _need(cursor, _LEGACY_KEY)
        key = cursor.original(opened, "key")
        closer = re.compile(rf"</{re.escape(opened['key'])}>")
        values.setdefault(key, read_value(cursor, closer, _LEGACY_FOLLOW))
        cursor.blanks()
    _need(cursor, _END)
    cursor.close()
    return TextCall(name, values, typed=False)


_LEGACY_FOLLOW: Final = re.compile(f"{_LEGACY_KEY.pattern}|{_LEGACY_END.pattern}")


def _tags(cursor: Cursor, *tags: str) -> None:
    for tag in tags:
        cursor.expect(tag)
        cursor.blanks()


def _need(cursor: Cursor, pattern: re.Pattern[str]) -> re.Match[str]:
    """Like `Cursor.need`, for a pattern that is one tag: a tag without its end is unfinished."""
    if cut_tag(cursor.canon, cursor.at):
        raise TextEnded
    return cursor.need(pattern)
