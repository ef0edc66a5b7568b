"""Large objects in which no member stands twice: decoded, and changed, without a second pass over their text.

Where a value stands follows from what was decoded: the values before and behind the large one are spelled again, and
when the text begins and ends with exactly that, the places are known. Of anything else `splice` looks at the text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from troyproxy.wire.json import decode, encode

LARGE: Final = 1 << 13
"""Bytes of a text that costs more to read again than what it takes here to do without."""
_WHITESPACE: Final = b" \t\n\r"
_NESTED: Final = (dict, list)

Place = tuple[int, int, str]
"""Where a value begins and ends, and its key."""


class _Value:
    """One value as it was met."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


_VALUES: Final = dict[str, _Value]


def decode_large(data: bytes) -> tuple[object, bool]:
    """Return the value of *data* as `json.decode` does, and whether it is an object without any member twice.

    False also where that is not known. Raises MalformedJSON.
    """
    met: list[_Value] = []

    def meet(_: type, value: object) -> _Value:
        found = _Value(value)
        met.append(found)
        return found

    try:
        members = msgspec.json.decode(data, type=_VALUES, dec_hook=meet)
    except (msgspec.DecodeError, RecursionError):
        return decode(data), False
    return {key: found.value for key, found in members.items()}, len(met) == len(members)


def places(text: bytes, known: Mapping[str, object], wanted: Collection[str]) -> list[Place] | None:
    """Return where the values of the members *wanted* stand in *text*, in their order; None where that is not plain.

    *known* is the decoded text, without any member twice, and has all of *wanted*.
    """
    keys = list(known)
    if not keys or text[-1:] != b"}" or text[-2] in _WHITESPACE:
        return None
    begun = len(encode(keys[0])) + 2
    comma, colon = (b", ", b": ") if text[begun : begun + 1] == b" " else (b",", b":")
    found: list[Place] = []
    at, before = 0, b"{"
    for number, key in enumerate(keys):
        if len(found) == len(wanted):
            return found
        lead, value = b"%b%b%b" % (before, encode(key), colon), known[key]
        if not text.startswith(lead, at):
            return None
        if isinstance(value, _NESTED):
            behind = _from_the_end(text, known, keys[:number:-1], set(wanted).difference(keys[:number]), (comma, colon))
            return None if behind is None else found + behind
        at, start, before = at + len(lead), at + len(lead), comma
        at += len(spelled := encode(value))
        if not text.startswith(spelled, start) or text[at] not in b",}":
            return None
        if key in wanted:
            found.append((start, at, key))
    return found


def _from_the_end(
    text: bytes, known: Mapping[str, object], keys: list[str], wanted: set[str], marks: tuple[bytes, bytes]
) -> list[Place] | None:
    """Do the same with the last *keys*, the last one first; *marks* are a comma and a colon as they are laid out."""
    found: list[Place] = []
    end, (comma, colon) = len(text) - 1, marks
    for key in keys:
        if len(found) == len(wanted):
            break
        value = encode(known[key])
        lead = b"%b%b%b%b" % (comma, encode(key), colon, value)
        if not text.endswith(lead, 0, end):
            return None
        if key in wanted:
            found.append((end - len(value), end, key))
        end -= len(lead)
    return found[::-1] if len(found) == len(wanted) else None
