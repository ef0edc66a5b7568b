"""Change top-level members of a JSON object and leave every other byte alone.

What the gateway does not need to change must arrive as it was sent: number spellings, key order, whitespace, NaN and
surrogate escapes survive, and so do the prompt caches that depend on equal prefixes. Nested members are out of scope.

msgspec finds the raw text of each value. In a text in one of the two usual layouts (compact, or the blanks of Python's
``json.dumps``) the places of the values follow from their lengths. In any other the values are lined up with the text,
and where even that does not fit (duplicate keys, escapes in keys, text that msgspec refuses) the standard library's
scanner finds the spans. Of a large text whose members are known to stand once, `places` tells it without a look.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from troyproxy.wire.json import BOM, MalformedJSON, decode, encode
from troyproxy.wire.places import Place, places

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


def edit(
    body: bytes, changes: Mapping[str, object], drop: Collection[str] = (), known: Mapping[str, object] | None = None
) -> bytes:
    """Return the JSON object *body* with the members *changes* set and the members *drop* gone.

    New members go to the end, in the order of *changes*; a key in both is set. The same object comes back when
    nothing has to change. Of duplicate keys only the last stays, and a byte order mark goes, whatever was asked for:
    the next reader must see what we saw. *known* is the decoded body, where no member stands twice in it (`places`): a
    large one is then not read again. Raises MalformedJSON when *body* is no JSON object.
    """
    if known is not None:
        edited = _as_known(body, known, changes, drop)
        if edited is not None:
            return edited
    try:
        raws = _RAW.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return _elsewhere(body.removeprefix(BOM), {}, changes, drop)
    if raws and not (drop and any(key in raws for key in drop)):
        edited = _in_place(body, raws, changes)
        if edited is not None:
            return edited
    return _elsewhere(body, raws, changes, drop)


def _in_place(text: bytes, raws: Mapping[str, msgspec.Raw], changes: Mapping[str, object]) -> bytes | None:
    """Return *text* edited, where it is laid out in a usual way; None where it is not."""
    found: list[Place] = []
    at = 1  # behind the brace
    for key, raw in raws.items():
        start = at + len(key) + 3  # behind the key, its quotes and the colon
        at = start + len(raw) + 1  # behind the comma
        if key in changes:
            found.append((start, at - 1, key))
    # A text that is as long as its distinct members with no blank between them has no blank, and no key twice.
    if at != len(text):
        if at + 2 * len(raws) - 1 != len(text) or _spaced(raws) != text:
            return None
        found = _moved(raws, found)
    return _changed(text, found, raws, changes)


def _as_known(
    text: bytes, known: Mapping[str, object], changes: Mapping[str, object], drop: Collection[str]
) -> bytes | None:
    """Return *text* edited by what was decoded from it; None where that does not do."""
    if drop and any(key in known for key in drop):
        return None
    found = places(text, known, [key for key in changes if key in known])
    return None if found is None else _changed(text, found, known, changes)


def _changed(text: bytes, found: list[Place], members: Collection[str], changes: Mapping[str, object]) -> bytes:
    """Return *text* with new values in the places *found*, and behind its *members* those that it has not."""
    pieces, done = _replaced(text, found, changes)
    if len(found) < len(changes):
        added = [b",%b:%b" % (encode(key), encode(changes[key])) for key in changes if key not in members]
        pieces += (memoryview(text)[done:-1], *added)
        done = len(text) - 1
    return b"".join((*pieces, memoryview(text)[done:])) if pieces else text


def _moved(raws: Mapping[str, msgspec.Raw], found: list[Place]) -> list[Place]:
    """Return the places *found* where a blank follows each colon and each comma."""
    blanks = {key: 2 * number + 1 for number, key in enumerate(raws)}
    return [(start + blanks[key], end + blanks[key], key) for start, end, key in found]


def _replaced(text: bytes, found: list[Place], changes: Mapping[str, object]) -> tuple[list[bytes | memoryview], int]:
    """Return the text up to the last value that changes, in pieces, and where that value ends."""
    pieces: list[bytes | memoryview] = []
    done = 0
    for start, end, key in found:
        value = _respelled(text[start:end], changes[key])
        if value is not None:
            pieces += (memoryview(text)[done:start], value)
            done = end
    return pieces, done


def _spaced(raws: Mapping[str, msgspec.Raw]) -> bytes:
    """Return the object as Python's ``json.dumps`` lays it out."""
    parts: list[bytes | msgspec.Raw] = []
    before = "{"
    for key, raw in raws.items():
        parts += (f'{before}"{key}": '.encode(), raw)
        before = ", "
    return b"".join((*parts, b"}"))


def _elsewhere(
    text: bytes, raws: Mapping[str, msgspec.Raw], changes: Mapping[str, object], drop: Collection[str]
) -> bytes:
    """Edit a text in any other layout, or one that loses a member."""
    try:
        members, tail = _line_up(text, raws) or _scan(text)
    except RecursionError:  # pragma: no cover -- `decode` gives up first, by a level or two
        raise MalformedJSON("too deep") from None
    edited = _set([m for m in _last_of_each(members) if m.key in changes or m.key not in drop], changes)
    if edited == members:
        return text  # the same object as the body when it had no mark
    return _assemble(members[0].before if members else _opening(text), edited, tail)


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
    text = _respelled(member.value, value)
    return member if text is None else replace(member, value=text)


def _respelled(old: bytes, value: object) -> bytes | None:
    """Return the text of *value*, or None when *old* spells the same: a string in two ways only if it has escapes."""
    text = encode(value)
    if old == text:
        return None
    twofold = not isinstance(value, str) or b"\\" in old
    return None if twofold and encode(decode(old)) == text else text


def _opening(text: bytes) -> bytes:
    return text[: text.index(b"{") + 1]


def _assemble(opening: bytes, members: list[_Member], tail: bytes) -> bytes:
    parts: list[bytes] = [opening]
    for at, member in enumerate(members):
        if at:
            parts.append(member.before)
        parts += (member.head, member.value)
    return b"".join([*parts, tail])
