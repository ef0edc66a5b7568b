"""Calls without a marker, at the very start of the content: what a server leaves when it strips special tokens.

Only the beginning is read here; whether the whole message is nothing but calls is seen at its end.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Final

from troyproxy.leaks.heads import MORE, NAME, NO, Head, read_head, skip_blanks
from troyproxy.leaks.names import is_declared
from troyproxy.leaks.table import Follow, Look

_WORDS: Final = ("functools[", "print(", "python(", "tool_code\n", "commentary to=")
_LONGEST: Final = max(map(len, _WORDS))
_BEFORE: Final = ("", "functions.", "default_api.", "tools.", "call:", "function")
_CODE: Final = "default_api."
_INFOS: Final = frozenset(
    {"", "json", "xml", "tool_call", "tool_calls", "tool_code", "python", "tool", "text", "function"}
)
_WRAPPER: Final = re.compile(r"<(?:tool|response|json|xml)>\s*")
_FENCE: Final = re.compile(r"(`{3,16}|~{3,16})[ \t]{0,4}([a-z_+-]{0,16})[ \t]{0,4}\r?\n")
_FENCE_BEGUN: Final = re.compile(r"(?:`{1,2}|~{1,2}|(?:`{3,16}|~{3,16})[ \t]{0,4}[a-z_+-]{0,16}[ \t]{0,4}\r?)\Z")


def fence(canon: str, index: int) -> tuple[Look, str, int]:
    """Return whether a fence that may hold a call opens at *index*, its characters, and where its inside begins."""
    opened = _FENCE.match(canon, index)
    if opened:
        return (Look.YES if opened[2] in _INFOS else Look.NO), opened[1], opened.end()
    return (Look.MORE if _FENCE_BEGUN.match(canon, index) else Look.NO), "", index


def bare_head(raw: str, canon: str, index: int, names: AbstractSet[str], *, fenced: bool = False) -> Head:
    """Read the head of a call without a marker; the name is a declared one. *shape* is the format id.

    A bare ``NAME(k=v)`` is none: it is the normal answer to "how do I call it?".
    """
    if canon[index] in "{[":
        return _bracket(raw, canon, index, names)
    if canon[index] == "<":
        return _wrapped(raw, canon, index)
    if canon[index] == ">":
        return _functionary(raw, canon, index, names)
    if len(canon) - index < _LONGEST or canon.startswith(_WORDS, index):
        for word in _WORDS:
            look = starts(canon, index, word)
            if look is Look.YES:
                return _after_word(raw, canon, index + len(word), word, names)
            if look is Look.MORE:
                return MORE
    return _named(raw, canon, index, names, fenced=fenced)


def starts(canon: str, index: int, word: str) -> Look:
    """Return whether *word* stands at *index*; MORE when the text ends inside of it."""
    if canon.startswith(word, index):
        return Look.YES
    return Look.MORE if word.startswith(canon[index : index + len(word)]) else Look.NO


def _bracket(raw: str, canon: str, index: int, names: AbstractSet[str]) -> Head:
    head = read_head(raw, canon, index, Follow.CALL)
    shape = {" object": "F06", " array": "F28", " list": "F08"}.get(head.shape, "")
    return _known(Head(head.look, head.name, shape, head.json_at), names)


def _wrapped(raw: str, canon: str, index: int) -> Head:
    """Read JSON in an element that is too common to be a marker."""
    wrapper = _WRAPPER.match(canon, index)
    if not wrapper or wrapper.end() == len(canon):
        return MORE if wrapper else NO
    head = read_head(raw, canon, wrapper.end(), Follow.CALL) if canon[wrapper.end()] in "{[" else NO
    return Head(head.look, "", "F03", head.json_at) if head.json_at >= 0 else NO


def _known(head: Head, names: AbstractSet[str]) -> Head:
    return NO if head.name and not is_declared(head.name, names) else head


def _functionary(raw: str, canon: str, index: int, names: AbstractSet[str]) -> Head:
    look = starts(canon, index, ">>>")
    if look is not Look.YES or index + 3 == len(canon):
        return NO if look is Look.NO else MORE
    return _named(raw, canon, index + 3, names)


def _after_word(raw: str, canon: str, index: int, word: str, names: AbstractSet[str]) -> Head:
    if word == "functools[":
        return Head(Look.MORE, "", "F29", index - 1)
    if word == "commentary to=":
        head = read_head(raw, canon, index, Follow.CALL) if index < len(canon) else MORE
        return _known(Head(head.look, head.name, "F30"), names)
    if word == "tool_code\n":
        look = starts(canon, index, "print(")
        return _code(raw, canon, index + 6, names) if look is Look.YES else Head(look)
    return _code(raw, canon, index, names)


def _code(raw: str, canon: str, index: int, names: AbstractSet[str]) -> Head:
    """Read the inside of ``print(default_api.NAME(``."""
    look = starts(canon, index, _CODE)
    if look is not Look.YES:
        return Head(look)
    index += len(_CODE)
    found = NAME.match(canon, index)
    end = found.end() if found else index
    if end == len(canon):
        return MORE
    fits = end > index and canon[end] == "("
    return _known(Head(Look.YES, raw[index:end], "F46"), names) if fits else NO


def _named(raw: str, canon: str, index: int, names: AbstractSet[str], *, fenced: bool = False) -> Head:
    found = NAME.match(canon, index)
    if not found:
        return NO
    end, word = found.end(), found[0]
    if end == len(canon):
        return MORE if _may_become(word, names) else NO
    name = raw[index:end]
    if word.startswith("call:") and is_declared(name[5:], names):
        return Head(Look.YES if canon[end] == "{" else Look.NO, name[5:], "F32")
    if is_declared(name.removesuffix(".call"), names):
        return _after_name(canon, end, name, fenced=fenced)
    name = name.removeprefix("function")
    return _after_function(canon, end, name) if name and is_declared(name, names) else NO


def _after_name(canon: str, end: int, name: str, *, fenced: bool) -> Head:
    after = skip_blanks(canon, end)
    if after == len(canon):
        return MORE
    if canon[after] == "{":
        return Head(Look.YES, name, "F47" if "\n" in canon[end:after] else "F45")
    code = name.endswith(".call") or (fenced and name.startswith(_CODE))
    if canon[end] == "(" and code:
        return Head(Look.YES, name.removesuffix(".call"), "F07" if name.endswith(".call") else "F46")
    return NO


def _after_function(canon: str, end: int, name: str) -> Head:
    """``functionNAME``, a line end, fenced JSON: what is left of DeepSeek's call."""
    look = starts(canon, end, "\n```json\n")
    return Head(look, name, "F17")


def _may_become(word: str, names: AbstractSet[str]) -> bool:
    """Whether the first word of a message, not yet ended, may be a declared name."""
    word = word.replace("-", "_")
    wanted = (before + name.lower().replace("-", "_") for name in names for before in _BEFORE)
    return any(name.startswith(word) or word.startswith(name) for name in wanted)
