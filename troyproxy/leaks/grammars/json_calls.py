"""JSON objects and arrays that are calls, in any of the key spellings seen (formats F03, F06, F11, F13-F16, F28, F29,
F33-F39, F45)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from troyproxy.leaks.effort import CALL
from troyproxy.leaks.grammars.cursor import Cursor, NotThis, TextCall
from troyproxy.leaks.grammars.json_text import json_value_in, read_object
from troyproxy.leaks.names import is_declared

_NAME_KEYS: Final = ("name", "tool_name", "function", "tool")
_ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "input")
_BESIDE: Final = frozenset({"type", "id", "tool_call_id", "index", "function", *_NAME_KEYS})


def json_object(cursor: Cursor, calls: list[TextCall]) -> None:
    """One object: a call, or a list of them under `tool_calls`."""
    calls.extend(_calls_of(read_object(cursor), cursor))


def json_array(cursor: Cursor, calls: list[TextCall]) -> None:
    """An array of objects; those that are complete count even where the array is left open."""
    cursor.expect("[")
    outside = cursor.open
    while True:
        cursor.step(CALL)
        cursor.blanks()
        calls.extend(_calls_of(read_object(cursor), cursor))
        cursor.whole = cursor.at
        cursor.blanks()
        if cursor.ended:  # a bracket left open behind a whole object harms nobody
            cursor.open = True
            return
        if cursor.take("]"):
            cursor.open = outside
            return
        cursor.expect(",")


def _calls_of(value: Mapping[str, object], cursor: Cursor) -> Iterator[TextCall]:
    listed = value.get("tool_calls")
    if not isinstance(listed, list):
        yield _call_of(value, cursor)
        return
    for item in listed:
        if not isinstance(item, Mapping):
            raise NotThis
        yield _call_of(item, cursor)


def _call_of(value: Mapping[str, object], cursor: Cursor) -> TextCall:
    inner = value.get("function")
    holders = (inner, value) if isinstance(inner, Mapping) else (value,)
    raw = next((name for holder in holders for key in _NAME_KEYS if isinstance(name := holder.get(key), str)), None)
    if not raw:
        return _keyed_by_name(value, cursor)
    found = [holder[key] for holder in holders for key in _ARGUMENT_KEYS if key in holder]
    if not found and (not cursor.marked or value.keys() - _BESIDE):
        raise NotThis
    arguments = _object(found[0]) if found else {}
    if arguments is None and not cursor.marked:
        raise NotThis
    return TextCall(cursor.named(raw), arguments)


def _keyed_by_name(value: Mapping[str, object], cursor: Cursor) -> TextCall:
    """``{"NAME": {arguments}}``, which only a marker and a declared name make a call."""
    if len(value) != 1 or not cursor.marked:
        raise NotThis
    (name, arguments), *_ = value.items()
    if not isinstance(arguments, dict) or not is_declared(name, cursor.names):
        raise NotThis
    return TextCall(cursor.named(name), arguments)


def _object(value: object) -> dict[str, object] | None:
    """The arguments; JSON in a JSON string is read too (the API's own shape)."""
    if isinstance(value, str):
        value = json_value_in(value)
    return value if isinstance(value, dict) else None
