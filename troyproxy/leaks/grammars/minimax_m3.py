"""MiniMax M3: nested elements, each tag behind the namespace token; list items are ``<item>`` (format F26)."""

from __future__ import annotations

import re
from typing import Final

from troyproxy.leaks.grammars.cursor import Cursor, NotThis, TextCall, TextEnded
from troyproxy.leaks.grammars.tokens import NAMESPACE
from troyproxy.leaks.grammars.values import without_line_ends

MAX_DEPTH: Final = 16
_SPACE: Final = "]<]minimax[>["
_INVOKE: Final = re.compile(rf"{NAMESPACE}\s*<invoke\s+name\s*=\s*[\"']?(?P<name>[^\"'<>\n]{{1,128}})[\"']?\s*>")
_INVOKE_END: Final = re.compile(rf"{NAMESPACE}\s*</invoke>")
_TAG: Final = re.compile(rf"{NAMESPACE}\s*<(?P<end>/?)(?P<key>[^\s<>/\"'=]{{1,128}})>")
_CUT: Final = re.compile(rf"{NAMESPACE}\s*(?:<[^<>\n]{{0,256}})?\Z")
_ITEM: Final = "item"

Nested = str | list[object] | dict[str, object]


def nested_invoke(cursor: Cursor, calls: list[TextCall]) -> None:
    """One invoke with its nested arguments; leaves are raw text."""
    found = _need(cursor, _INVOKE)
    cursor.marked = True
    name = cursor.named(cursor.original(found, "name"))
    arguments: dict[str, object] = {}
    cursor.blanks()
    while not cursor.match(_INVOKE_END):
        key, value = _element(cursor, 1)
        arguments.setdefault(key, value)
        cursor.blanks()
    cursor.close()
    calls.append(TextCall(name, arguments, typed=False))


def _element(cursor: Cursor, depth: int) -> tuple[str, Nested]:
    cursor.step()
    opened = _need(cursor, _TAG)
    if opened["end"] or depth > MAX_DEPTH:
        raise NotThis
    key, children = cursor.original(opened, "key"), []
    leaf = _text(cursor)
    while not leaf.strip() and not _closes(cursor, key):
        children.append(_element(cursor, depth + 1))
        cursor.blanks()
    closed = _need(cursor, _TAG)
    if not closed["end"] or cursor.original(closed, "key") != key:
        raise NotThis
    return key, _grouped(children) if children else without_line_ends(leaf)


def _grouped(children: list[tuple[str, Nested]]) -> Nested:
    if all(key == _ITEM for key, _ in children):
        return [value for _, value in children]
    values: dict[str, object] = {}
    for key, value in children:
        values.setdefault(key, value)
    return values


def _text(cursor: Cursor) -> str:
    end = cursor.canon.find(_SPACE, cursor.at)
    if end < 0:
        raise TextEnded
    text = cursor.text[cursor.at : end]
    cursor.at = end
    return text


def _closes(cursor: Cursor, key: str) -> bool:
    tag = _TAG.match(cursor.canon, cursor.at)
    return tag is not None and bool(tag["end"]) and cursor.original(tag, "key") == key


def _need(cursor: Cursor, pattern: re.Pattern[str]) -> re.Match[str]:
    found = cursor.match(pattern)
    if found is None:
        _check_cut(cursor)
        raise NotThis
    return found


def _check_cut(cursor: Cursor) -> None:
    rest = cursor.canon[cursor.at : cursor.at + len(_SPACE)]
    partial = cursor.at + len(rest) == len(cursor.canon) and _SPACE.startswith(rest)
    if partial or _CUT.match(cursor.canon, cursor.at):
        raise TextEnded
