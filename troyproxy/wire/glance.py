"""Large answers of the usual kind, read without making their text: that is half of what decoding one costs.

A glance must be as sure as the decoder. Whoever skips a string looks at its escapes as whoever reads it does, but not
whether it is UTF-8: so only ASCII is glanced at, which tells that of all of it. Numbers that nobody reads may be of any
size. Whatever is not plainly an answer in one text is left to the decoder, and to those who say what is wrong with it.
"""

from __future__ import annotations

from typing import Final

import msgspec

LARGE: Final = 1 << 14
"""Bytes of an answer that is worth a glance."""
_QUOTE: Final = ord('"')
_Absent = msgspec.Raw | msgspec.UnsetType
"""A member that a plain answer does not have."""


class _Message(msgspec.Struct, gc=False):
    content: msgspec.Raw


class _Choice(msgspec.Struct, gc=False):
    message: _Message
    delta: _Absent = msgspec.UNSET


class _Answer(msgspec.Struct, gc=False):
    choices: tuple[_Choice]
    usage: dict[str, object]
    error: _Absent = msgspec.UNSET


_ANSWER: Final = msgspec.json.Decoder(_Answer)


def glance(body: bytes) -> dict[str, object] | None:
    """Return the ``usage`` of an answer that `chat.is_plain`; None where one has to look closer, or nothing is there.

    What is found is what `json.decode` finds, and nothing that is no JSON is taken for an answer.
    """
    if not body.isascii():
        return None
    try:
        answer = _ANSWER.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    (choice,) = answer.choices
    text = memoryview(choice.message.content)
    if answer.error is choice.delta is msgspec.UNSET and len(text) > 2 and text[0] == _QUOTE:
        return answer.usage
    return None
