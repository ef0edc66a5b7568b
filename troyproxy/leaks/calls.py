"""Reads tool calls out of text, whatever dialect they are in. It judges nothing: no schema, no position, no mode.

All grammars are tried by what stands there, not by whose model it is: families speak each other's dialects. Between
calls stand openers, closers, stop tokens and blanks (`grammars/tokens.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from troyproxy.leaks.effort import CALL, REPAIR_STEPS, Effort
from troyproxy.leaks.formats import canonical
from troyproxy.leaks.grammars.cursor import Cursor, Grammar, NotThis, TextCall, TextEnded
from troyproxy.leaks.grammars.elements import HEAD, element
from troyproxy.leaks.grammars.gap import Gap
from troyproxy.leaks.grammars.harmony import segment
from troyproxy.leaks.grammars.json_calls import json_array, json_object
from troyproxy.leaks.grammars.kimi_k3 import channel_call
from troyproxy.leaks.grammars.minimax_m3 import nested_invoke
from troyproxy.leaks.grammars.named import named_call
from troyproxy.leaks.grammars.object_notation import called_object
from troyproxy.leaks.grammars.python_calls import plain_call, printed, python_list
from troyproxy.leaks.grammars.tokens import NAMESPACE, VALUE_CLOSER

__all__ = ["Reading", "TextCall", "read_calls"]

MAX_CALLS: Final = 128
_BY_CHARACTER: Final[dict[str, tuple[Grammar, ...]]] = {
    "{": (json_object,),
    "[": (json_array, python_list),
    "<": (element, channel_call, segment),
    "(": (element,),
    "]": (nested_invoke,),
}
_STRUCTURE: Final = re.compile(rf"{HEAD.pattern}|<\||{NAMESPACE}")
_WORDS: Final[tuple[Grammar, ...]] = (called_object, printed, segment, plain_call, named_call)


@dataclass(frozen=True, slots=True)
class Reading:
    """What stands at the start of a text.

    *end* is behind the last call and its closers, stop tokens, blanks, a closer cut by the end of the text, and an
    invented tool result (with all that follows it); 0 without calls. *complete*: there are calls, and none of what
    was begun is unfinished or broken. *dangling*: the text ends inside a call or behind an opener; calls before it
    are whole. Calls with neither: what follows them is broken. *closed* is false where the last call's wrapper or
    bracket was left open, though its arguments are whole.
    """

    calls: tuple[TextCall, ...]
    end: int
    complete: bool
    dangling: bool
    closed: bool = True


def read_calls(
    text: str, names: frozenset[str], *, extra: tuple[str, ...] = (), effort: Effort | None = None
) -> Reading:
    """Return the calls at the start of *text*. *names* are the declared tools, *extra* more openers.

    Without a marker only declared names make a call; behind one an undeclared name is returned as it was read.
    More than 128 calls are not complete. Takes time linear in the length of *text*, and no more than *effort* (that
    of a repair, where none is given): what cannot be read with it is broken. Never raises.
    """
    effort = effort or Effort(REPAIR_STEPS)
    effort.read(len(text))
    cursor = Cursor(text, canonical(text), names, effort=effort)
    gap = Gap(cursor, tuple(canonical(opener) for opener in extra))
    calls: list[TextCall] = []
    dangling = gap.skip(started=False)
    broken = False
    while not (dangling or broken or cursor.ended or gap.over or len(calls) > MAX_CALLS):
        try:
            _read_one(cursor, calls)
        except TextEnded:
            dangling = True
        except NotThis:
            broken = True
        else:
            dangling = gap.skip(started=True)
    end = max(gap.end, cursor.whole) if calls else 0
    broken = effort.over or (broken and (gap.opened or _STRUCTURE.match(cursor.canon, cursor.at) is not None))
    nested = VALUE_CLOSER.search(cursor.canon, end) is not None
    complete = 0 < len(calls) <= MAX_CALLS and not (dangling or broken or nested)
    return Reading(tuple(calls), end, complete, dangling, closed=not cursor.open)


def _read_one(cursor: Cursor, calls: list[TextCall]) -> None:
    """Add the call (or the list of calls) that begins here; where nothing fits, the cursor stays."""
    cursor.step(CALL)
    known, before = len(calls), (cursor.at, cursor.whole, cursor.marked, cursor.open)
    for grammar in _BY_CHARACTER.get(cursor.char, _WORDS):
        try:
            grammar(cursor, calls)
        except NotThis:
            del calls[known:]
            cursor.at, cursor.whole, cursor.marked, cursor.open = before
        else:
            return
    raise NotThis
