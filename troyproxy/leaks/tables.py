"""The spellings of `openers.py`, one table per place where text is read, and the search in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from troyproxy.leaks import openers
from troyproxy.leaks.formats import CLASSIC_MARKERS, canonical, spellings
from troyproxy.leaks.table import Follow, Look, Row, Sort, Table, Tier

INNER: Final = Table(
    (
        *(row for row in openers.openers() if row.format != "F26"),
        *openers.leading(),
        Row("]<]minimax[>[", Sort.PART, "F26"),
        Row("function<|tool_sep|>", Sort.PART, "F17"),
        Row("call:", Sort.PART),
        Row("to=", Sort.PART),
        Row("print(", Sort.PART),
        Row("python(", Sort.PART),
        Row("tool_code\n", Sort.PART),
        Row("```json\n", Sort.PART),
        Row("```\n", Sort.PART),
        Row("<tool_name>", Sort.PART, "F44", follow=Follow.NAME),
    )
)
"""What may stand between an opener and the name: models mix dialects, so every opener may."""

TAIL: Final = Table(
    (
        *(row for row in openers.openers() if not row.text.startswith("<|message_sep|>")),
        *openers.leading(),
        *openers.closers(),
        *openers.stops(),
        *openers.results(),
    )
)
"""What may follow a call."""

CLASSIC: Final = Table(
    Row(text, Sort.OPENER, format_id)
    for text, format_id in zip(CLASSIC_MARKERS, ("F01", "F02", "F02", "F03", "F06", "F13", "F29"), strict=True)
)
"""The seven markers of the older guard."""

_SIGN: Final = re.compile("[<\uff1c\\[\\]{(`]")
_FAMILY: Final = re.compile(r"<[a-z][a-z0-9_]{0,10}:(?:(invoke name=)|(?:function_calls|tool_calls?|function_call)>)")
_STEMS: Final = ("invoke name=", "function_calls>", "tool_call>", "tool_calls>", "function_call>")
_FAMILY_HEAD: Final = re.compile(r"<[a-z][a-z0-9_]{0,10}(?::([a-z_= ]{0,14}))?")
_FOREIGN: Final = "[A-Za-z][A-Za-z0-9_\u2581]{0,10}(?::(?:[iftIFT]|\\Z)|\\Z)"
_DEPTH: Final = 5  # characters of a spelling after which the search in prose stops and the table is asked
_ELEMENTS: Final = ("<invoke", "<function", "<tool_call", "<parameter", "<arg_value")


@dataclass(frozen=True, slots=True)
class Ends:
    """What ends one think block, and what finds where it may begin in canonical text."""

    table: Table
    first: re.Pattern[str]


@lru_cache(maxsize=32)
def ends(text: str) -> Ends:
    """Return what ends a think block that *text* closes."""
    return Ends(
        Table((Row(text, Sort.THOUGHT), Row(openers.SECTION, Sort.OPENER))),
        finder({text, openers.SECTION}),
    )


@dataclass(frozen=True, slots=True)
class Tables:
    """What one scanner looks for: *prose* anywhere in the content, *lead* at its start."""

    prose: Table
    lead: Table
    first: re.Pattern[str]
    """Finds where a spelling of *prose* may begin, in text that need not be canonical."""
    firsts: tuple[str, ...]
    """The characters that any of them begins with: text without them holds none, which is told faster so."""


@lru_cache(maxsize=32)
def tables(extra_openers: tuple[str, ...] = ()) -> Tables:
    """Return the tables for an operator's own openers."""
    rows = (
        *openers.openers(),
        *openers.added(tuple(filter(None, map(canonical, extra_openers)))),
        *openers.closers(),
        *openers.thinking(),
        *openers.thoughts(),
        *openers.marks(),
    )
    return Tables(
        prose=Table(rows),
        lead=Table((*rows, *openers.leading(), *openers.roles())),
        first=finder({row.text for row in rows}, _FOREIGN),
        firsts=tuple(sorted({first for row in rows for first in spellings(row.text[0])} | spellings("<"))),
    )


def is_unsigned(text: str) -> bool:
    """Whether *text* has none of the characters without which nothing is a call, but for an operator's own openers.

    Each opener, closer and stop token has one (tested), and so has a call without a marker, before its arguments.
    """
    return _SIGN.search(text) is None


def finder(texts: set[str], foreign: str = "") -> re.Pattern[str]:
    """Return what finds, in text of any spelling, the beginning of one of *texts*, even one cut by the text's end.

    One set of characters stands first, and another one second: nearly all text is gone over by these.
    """
    firsts = sorted({text[0] for text in texts})
    rests = {first: {text[1:_DEPTH] for text in texts if text[0] == first} for first in firsts}
    near = _near(set().union(*rests.values()), foreign)
    branches = [f"(?<={_any_of(first)}){_near(rest)}{_rest(rest)}" for first, rest in rests.items()]
    if foreign:
        branches.append(f"(?<={_any_of('<')}){foreign}")
    return re.compile(f"{_any_of(*firsts)}{near}(?:{'|'.join(branches)})")


def _near(rests: set[str], foreign: str = "") -> str:
    """Return what looks one character ahead, if that helps."""
    letters = "A-Za-z" if foreign else ""
    seconds = {rest[:1] for rest in rests}
    return "" if "" in seconds or len(seconds) == 1 else f"(?![^{letters}{_any_of(*seconds)[1:]})"


def _rest(texts: set[str]) -> str:
    if "" in texts:
        return ""
    firsts = sorted({text[0] for text in texts})
    branches = (_any_of(first) + _rest({text[1:] for text in texts if text[0] == first}) for first in firsts)
    return rf"(?:{'|'.join(branches)}|\Z)"


def _any_of(*characters: str) -> str:
    return "[" + re.escape("".join(sorted({spelling for each in characters for spelling in spellings(each)}))) + "]"


def spelled(table: Table, canon: str, index: int, raw: str) -> Row | Look:
    """Return the row at *index*, as `Table.at` does; also an element of the invoke family with a foreign prefix."""
    found = table.at(canon, index)
    if isinstance(found, Row):
        return found if not found.exact or raw.startswith(found.exact, index) else Look.NO
    return _family(canon, index) if found is Look.NO and canon[index] == "<" else found


def is_element(canon: str, index: int) -> bool:
    """Whether an element of a call begins here, if only in name: then a closer of it is no orphan."""
    return canon.startswith(_ELEMENTS, index)


def _family(canon: str, index: int) -> Row | Look:
    whole = _FAMILY.match(canon, index)
    if whole:
        follow = Follow.NAME if whole[1] else Follow.CALL
        return Row(whole[0], Sort.OPENER, "F43", Tier.MARKUP, follow)
    head = _FAMILY_HEAD.match(canon, index)
    unfinished = head and head.end() == len(canon) and any(stem.startswith(head[1] or "") for stem in _STEMS)
    return Look.MORE if unfinished else Look.NO
