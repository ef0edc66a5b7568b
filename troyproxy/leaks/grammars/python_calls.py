"""Calls written in Python: ``[NAME(k=v), …]``, one per line, ``NAME.call(…)``, Gemini's ``print(default_api.NAME(…))``
(formats F07-F10, F38, F46)."""

from __future__ import annotations

import re
from typing import Final

from troyproxy.leaks.effort import CALL
from troyproxy.leaks.grammars.cursor import Cursor, NotThis, TextCall
from troyproxy.leaks.grammars.python_text import read_arguments

_NAME: Final = re.compile(r"[a-z_][\w.-]{0,127}+")
_BUILT_IN: Final = re.compile(r"(?P<name>[a-z_][\w.-]{0,127}?)\.call\(")
_API: Final = "default_api."


def python_list(cursor: Cursor, calls: list[TextCall]) -> None:
    """``[NAME(…), NAME(…)]``; what is complete counts even where the bracket is left open."""
    cursor.expect("[")
    outside = cursor.open
    while True:
        cursor.step(CALL)
        cursor.blanks()
        calls.append(_call(cursor))
        cursor.whole = cursor.at
        cursor.blanks()
        if cursor.ended:
            cursor.open = True
            return
        if cursor.take("]"):
            cursor.open = outside
            return
        cursor.expect(",")


def printed(cursor: Cursor, calls: list[TextCall]) -> None:
    """``print(default_api.NAME(…))``, ``python(…)`` around it, or nothing around it."""
    wrapped = cursor.take("print(") or cursor.take("python(")
    cursor.blanks()
    if not cursor.canon.startswith(_API, cursor.at):
        cursor.expect(_API)
    calls.append(_call(cursor))
    cursor.blanks()
    if wrapped and not cursor.ended:
        cursor.expect(")")


def plain_call(cursor: Cursor, calls: list[TextCall]) -> None:
    """``NAME.call(…)``, and behind a marker ``NAME(…)`` (without one that is the answer to "how do I call it?")."""
    built_in = _BUILT_IN.match(cursor.canon, cursor.at)
    if built_in is None and not cursor.marked:
        raise NotThis
    if built_in is None:
        calls.append(_call(cursor))
        return
    name = cursor.named(cursor.original(built_in, "name"))
    cursor.at = built_in.end()
    calls.append(TextCall(name, read_arguments(cursor)))


def _call(cursor: Cursor) -> TextCall:
    name = cursor.name(_NAME)
    cursor.blanks()
    cursor.expect("(")
    return TextCall(name, read_arguments(cursor))
