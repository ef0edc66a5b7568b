"""Reads the head of a call: from behind its opener to the tool's name and the character that shows it goes on.

The answers are no, more and yes, and they are stable: more text never turns a no into a yes, or back. JSON is left to
`json_head.py`, which can be fed by the piece.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from troyproxy.leaks.table import Follow, Look, Row, Sort, Table
from troyproxy.leaks.tables import INNER

BLANKS: Final = re.compile(r"\s*")
NAME: Final = re.compile(r"[^\W\d][\w.:-]*")
_BEFORE_NAME: Final = re.compile(r"[\"'\s]*")
_BESIDE_NAME: Final = re.compile(r"""["'`|),>/\s]*(?:[a-z_]{1,20}="[^"<>\n]{0,64}"["'|),>/\s]*)*""")
_BROKEN_ATTRIBUTE: Final = re.compile(r'[a-z_]{1,20}(?:=(?:"[^"<>\n]{0,64})?)?\Z')
_MOST_PARTS: Final = 8  # between an opener and the name; five are known to be
_SUFFIX: Final = re.compile(r"[\w.-]*")
_ATTRIBUTE: Final = r"""[a-z_][\w.-]{0,31}+\s*+=\s*+(?:"[^"<>\n]{0,64}+"|'[^'<>\n]{0,64}+')\s*+"""
_TAG_END: Final = re.compile(rf"\s*+(?:{_ATTRIBUTE}){{0,4}}+>")
_CUT_TAG: Final = re.compile(
    rf"""\s*+(?:{_ATTRIBUTE}){{0,4}}+(?:[a-z_][\w.-]{{0,31}}+\s*+(?:=\s*+(?:"[^"<>\n]{{0,64}}+|'[^'<>\n]{{0,64}}+)?)?)?\Z"""
)

# What may stand behind a bare name, blanks skipped.
_AFTER: Final = Table(
    Row(text, Sort.PART, shape)
    for text, shape in (
        ("{", "object"),
        ("[args]", "object"),
        ("[call_id]", "object"),
        ("```", "fence"),
        ("<arg_key", "keys"),
        ("</tool_call", "keys"),
        ("<tool_sep", "keys"),
        ("</function", "tags"),
        ("<parameter", "tags"),
        ("<param ", "tags"),
        ("<|", "token"),
        ("json{", "object"),
        ("json {", "object"),
        ("json<|", "object"),
        ("code<|", "object"),
    )
)


@dataclass(frozen=True, slots=True)
class Head:
    """What was read.

    With YES, and perhaps with MORE, *name* is the tool's name as written; *shape* tells formats apart. *json_at* >= 0:
    JSON begins there, and the name is in it.
    """

    look: Look
    name: str = ""
    shape: str = ""
    json_at: int = -1


NO: Final = Head(Look.NO)
MORE: Final = Head(Look.MORE)


def read_head(raw: str, canon: str, index: int, follow: Follow) -> Head:
    """Read what stands behind an opener; *index* is where the opener ends."""
    shape = ""
    for _ in range(_MOST_PARTS):
        index = skip_blanks(canon, index)
        if index == len(canon):
            return MORE
        if follow is Follow.NAME:
            return _attribute(raw, canon, index, shape)
        if canon[index] in "{[":
            return _bracket(raw, canon, index, shape)
        row = INNER.at(canon, index)
        if not isinstance(row, Row):
            return MORE if row is Look.MORE else bare(raw, canon, index, shape)
        behind = tag_end(canon, index, row.text)
        if isinstance(behind, Look):
            return Head(behind)
        index, follow, shape = behind, row.follow, shape + row.format
        if row.text.endswith(":") and row.text.startswith("<"):
            index = skip_suffix(canon, index)
    return NO


def skip_blanks(canon: str, index: int) -> int:
    """Return where the blanks that begin at *index* end."""
    found = BLANKS.match(canon, index)
    return found.end() if found else index


def tag_end(canon: str, index: int, text: str) -> int | Look:
    """Return where the tag ends that the spelling *text* begins at *index*; NO where it is none, MORE where it is cut.

    Most spellings are whole tags; one that ends in a blank may go on with attributes.
    """
    index += len(text)
    if not (text.startswith("<") and text.endswith(" ")):
        return index
    if found := _TAG_END.match(canon, index):
        return found.end()
    return Look.MORE if _CUT_TAG.match(canon, index) else Look.NO


def skip_suffix(canon: str, index: int) -> int:
    """Return where a tag's suffix, such as ``opensource>``, ends."""
    found = _SUFFIX.match(canon, index)
    end = found.end() if found else index
    return end + 1 if canon.startswith(">", end) else end


def bare(raw: str, canon: str, index: int, shape: str = "") -> Head:
    """Read a name without quotes, and what follows it."""
    found = NAME.match(canon, index)
    if not found:
        return NO
    end = found.end()
    if end == len(canon):
        return MORE
    after = skip_blanks(canon, end)
    name = raw[index:end].removesuffix(".call")
    if after == len(canon):
        return Head(Look.MORE, name, shape)
    if canon[after] == "(":
        return Head(Look.NO if "\n" in canon[end:after] else Look.YES, name, shape + " call")
    row = _AFTER.at(canon, after)
    look = Look.YES if isinstance(row, Row) else row
    return Head(look, name, f"{shape} {row.format}" if isinstance(row, Row) else shape)


def _bracket(raw: str, canon: str, index: int, shape: str) -> Head:
    """Read JSON, or a Python list of calls."""
    if canon[index] == "{":
        return Head(Look.MORE, "", shape + " object", index)
    inner = skip_blanks(canon, index + 1)
    if inner == len(canon):
        return MORE
    if canon[inner] == "{":
        return Head(Look.MORE, "", shape + " array", index)
    found = NAME.match(canon, inner)
    if not found:
        return NO
    if found.end() == len(canon):
        return MORE
    fits = canon[found.end()] == "("
    return Head(Look.YES if fits else Look.NO, raw[inner : found.end()], shape + " list")


def _attribute(raw: str, canon: str, index: int, shape: str) -> Head:
    """Read a name inside a tag, as in ``<function=N>``, ``<invoke name="N">`` or ``<function(N)>``."""
    before = _BEFORE_NAME.match(canon, index)
    start = before.end() if before else index
    tag = canon.endswith(("name=", "(function="), 0, index)  # what has to end; more attributes may follow
    found = NAME.match(canon, start)
    if not found:
        return MORE if start == len(canon) else NO
    end = found.end()
    if end == len(canon):
        return MORE
    beside = _BESIDE_NAME.match(canon, end)
    after, name = beside.end() if beside else end, raw[start:end]
    if after == len(canon) or _BROKEN_ATTRIBUTE.match(canon, after):
        return Head(Look.MORE, name, shape)
    fits = canon[after] in "{(<[]" and (not tag or ">" in canon[end:after])
    return Head(Look.YES if fits else Look.NO, name, shape + (" tags" if canon[after] in "<]" else " json"))
