"""Calls that begin with the bare name: ``NAME{json}``, ``NAME[ARGS]{json}``, DeepSeek's and Kimi K2's headers,
``NAME<arg_key>…`` (formats F12, F17, F18, F21, F23, F24, F27, F40, F45, F47), and what is left of them without their
special tokens."""

from __future__ import annotations

import re
from typing import Final

from troyproxy.leaks.grammars.cursor import Cursor, NotThis, TextCall, TextEnded
from troyproxy.leaks.grammars.elements import HEAD, element
from troyproxy.leaks.grammars.json_text import read_object
from troyproxy.leaks.grammars.key_value import KEY, read_pairs
from troyproxy.leaks.grammars.tokens import cut_tag
from troyproxy.leaks.names import is_declared

_NAME: Final = re.compile(r"[\w.:/-]{1,128}")
# DeepSeek says what kind of call it is, then the name; without its token the two words are glued.
_KIND: Final = "function"
_SEPARATOR: Final = re.compile(r"<\|tool(?:\\?_| )sep\|>\s*")
_HEADER: Final = re.compile(
    r"\s*(?:\[call_id\][\w-]{1,64})?\[args\]\s*"
    r"|\s*<\|tool_call_argument_begin\|>\s*"
    rf"|\s*{_SEPARATOR.pattern}"
    r"|\s*<tool_sep(?::[\w-]{1,32})?>\s*"
    r"|\s*\n"
    r"|[ \t]*"
)
_FENCE: Final = re.compile(r"\s*`{3,}(?:json)?\s*")
_FENCE_END: Final = re.compile(r"\s*`{3,}")
_NO_ARGUMENTS: Final = re.compile(r"\s*(?:</tool_call(?::[\w-]{1,32})?>|<\|tool_call:end\|>)")
_CUT: Final = re.compile(r"\s*(?:\[[a-z_\]]{0,9}(?:[\w-]{1,64}(?:\[[args]{0,4})?)?|`{1,3}[a-z]{0,4})\Z")


def named_call(cursor: Cursor, calls: list[TextCall]) -> None:
    """One call that begins with a name."""
    raw = cursor.original(cursor.need(_NAME))
    if cursor.ended:
        raise TextEnded if cursor.may_name(raw) or cursor.may_name(_behind_kind(raw)) else NotThis
    if cursor.marked and cursor.match(_SEPARATOR):
        _behind_separator(raw, cursor, calls)
        return
    name = cursor.named(_unglued(raw, cursor))
    cursor.match(_HEADER)
    calls.append(_call(name, cursor))


def _behind_separator(raw: str, cursor: Cursor, calls: list[TextCall]) -> None:
    """Behind DeepSeek's separator stands the name (its kind came first), an element, or the arguments."""
    if raw.lower() == _KIND and cursor.char != "{":
        if HEAD.match(cursor.canon, cursor.at) or cut_tag(cursor.canon, cursor.at):
            element(cursor, calls)
            return
        raw = cursor.original(cursor.need(_NAME))
        cursor.blanks()
    calls.append(_call(cursor.named(raw), cursor))


def _behind_kind(raw: str) -> str:
    return raw[len(_KIND) :] if raw.lower().startswith(_KIND) else raw


def _unglued(raw: str, cursor: Cursor) -> str:
    rest = _behind_kind(raw)
    return rest if not is_declared(raw, cursor.names) and is_declared(rest, cursor.names) else raw


def _call(name: str, cursor: Cursor) -> TextCall:
    """The arguments behind a header: none, pairs, or an object that may stand in a fence."""
    if cursor.marked and cursor.match(_NO_ARGUMENTS):
        cursor.close()
        return TextCall(name, {})
    ahead = Cursor(cursor.text, cursor.canon, cursor.names, cursor.at)
    ahead.blanks()
    if KEY.match(ahead.canon, ahead.at) or (not ahead.ended and cut_tag(ahead.canon, ahead.at)):
        return TextCall(name, read_pairs(cursor), typed=False)
    if _CUT.match(cursor.canon, cursor.at):
        raise TextEnded
    fenced = cursor.match(_FENCE)
    arguments = read_object(cursor)
    if fenced:
        cursor.match(_FENCE_END)
    return TextCall(name, arguments)
