"""Change top-level members of a JSON object and leave every other byte alone.

What the gateway does not need to change must arrive as it was sent: number spellings, key order, whitespace, NaN and
surrogate escapes survive, and so do the prompt caches that depend on equal prefixes. Nested members are out of scope.

The fast way asks msgspec for the raw text of each value and lines it up with the text; where that does not fit
(duplicate keys, escapes in keys, text that msgspec refuses) the standard library's scanner finds the spans.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from troyproxy.wire.json import BOM, MalformedJSON, decode, encode

_SPACE: Final = rb"[ \t\n\r]*"
_OPEN: Final = re.compile(_SPACE + rb"\{" + _SPACE)
_KEY: Final = re.compile(rb'"([^"\\]*)"' + _SPACE + rb":" + _SPACE)
_NEXT: Final = re.compile(_SPACE + rb"," + _SPACE)
_END: Final = re.compile(_SPACE + rb"\}" + _SPACE + rb"\Z")
_WHITESPACE: Final = re.compile(r"[ \t\n\r]*")
_RAW: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SCANNER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Member:
    """One member: what stands before it (a brace or a comma, with spaces), ``"key": `` and the value's own text."""

    before: bytes
    key: str
    head: bytes
    value: bytes


def edit(body: bytes, changes: Mapping[str, object], drop: Collection[str] = ()) -> bytes:
    """Return the JSON object *body* with the members *changes* set and the members *drop* gone.

    New members go to the end, in the order of *changes*; a key in both is set. The same object comes back when
    nothing has to change. Of duplicate keys only the last stays, and a byte order mark goes, whatever was asked for:
    the next reader must see what we saw. Raises MalformedJSON when *body* is no JSON object.
    """
    text = body.removeprefix(BOM)
    members, tail = _members(text)
    edited = _set([m for m in _last_of_each(members) if m.key in changes or m.key not in drop], changes)
    if edited == members:
        return text  # the same object as *body* when it had no mark
    return _assemble(members[0].before if members else _opening(text), edited, tail)


def _members(text: bytes) -> tuple[list[_Member], bytes]:
    """Return the members of *text* in order, duplicates too, and what follows the last value."""
    try:
        return _line_up(text, _raws(text)) or _scan(text)
    except RecursionError:
        raise MalformedJSON("too deep") from None


def _raws(text: bytes) -> Mapping[str, msgspec.Raw]:
    try:
        return _RAW.decode(text)
    except msgspec.DecodeError:
        return {}


def _line_up(text: bytes, raws: Mapping[str, msgspec.Raw]) -> tuple[list[_Member], bytes] | None:
    """Find each raw value in *text*; None when the two do not fit together."""
    members: list[_Member] = []
    seen: set[str] = set()
    start, opening = 0, _OPEN
    while found := opening.match(text, start):
        key = _KEY.match(text, found.end())
        name = key[1].decode("utf-8", "replace") if key else ""
        if key is None or name not in raws or name in seen:
            break
        value = bytes(raws[name])
        if not text.startswith(value, key.end()):
            break
        members.append(_Member(text[start : found.end()], name, key[0], value))
        seen.add(name)
        start, opening = key.end() + len(value), _NEXT
    return (members, text[start:]) if _END.match(text, start) else None


def _scan(body: bytes) -> tuple[list[_Member], bytes]:
    """Do the same with the standard library's scanner, for text that is odd but was accepted by ``decode``."""
    if not isinstance(decode(body), dict):
        raise MalformedJSON("not an object")
    text = body.decode("utf-8")
    members: list[_Member] = []
    brace = _skip(text, 0) + 1
    start, at, tail = 0, _skip(text, brace), brace
    while text[at] == '"':
        key, after_key = _SCANNER.raw_decode(text, at)
        value_at = _skip(text, _skip(text, after_key) + 1)
        _, tail = _SCANNER.raw_decode(text, value_at)
        parts = text[start:at], text[at:value_at], text[value_at:tail]
        before, head, value = (part.encode() for part in parts)
        members.append(_Member(before, key, head, value))
        start, at = tail, _skip(text, tail)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return members, text[tail:].encode()


def _skip(text: str, at: int) -> int:
    match = _WHITESPACE.match(text, at)
    return match.end() if match else at


def _last_of_each(members: list[_Member]) -> list[_Member]:
    last = {member.key: at for at, member in enumerate(members)}
    return [member for at, member in enumerate(members) if last[member.key] == at]


def _set(members: list[_Member], changes: Mapping[str, object]) -> list[_Member]:
    """Return *members* with new values; those with the same value stay as they are spelled."""
    edited = [_with_value(member, changes[member.key]) if member.key in changes else member for member in members]
    present = {member.key for member in members}
    added = [
        _Member(b",", key, encode(key) + b":", encode(value)) for key, value in changes.items() if key not in present
    ]
    return edited + added


def _with_value(member: _Member, value: object) -> _Member:
    text = encode(value)
    same = member.value == text or encode(decode(member.value)) == text
    return member if same else replace(member, value=text)


def _opening(text: bytes) -> bytes:
    return text[: text.index(b"{") + 1]


def _assemble(opening: bytes, members: list[_Member], tail: bytes) -> bytes:
    parts: list[bytes] = [opening]
    for at, member in enumerate(members):
        if at:
            parts.append(member.before)
        parts += (member.head, member.value)
    return b"".join([*parts, tail])
