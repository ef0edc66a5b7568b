"""The commonest events of a chat stream, read at a glance: one choice, a piece of it, and nothing else to know."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

_ANY: Final = msgspec.Raw(b"null")


class _Delta(msgspec.Struct, gc=False):
    """What else matters in a delta must be absent or null; other members are not looked at."""

    content: str
    role: None = None
    tool_calls: None = None
    function_call: None = None
    reasoning: None = None
    reasoning_content: None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta
    index: int = 0
    finish_reason: None = None


class _Event(msgspec.Struct, gc=False):
    choices: tuple[_Choice]
    error: None = None


class _BareDelta(_Delta, forbid_unknown_fields=True):
    refusal: None = None


class _BareChoice(msgspec.Struct):
    delta: _BareDelta
    finish_reason: None = None


class _Bare(msgspec.Struct, forbid_unknown_fields=True):
    """Around the text nothing but what every event of the answer says again; whatever that is."""

    choices: tuple[_BareChoice]
    id: msgspec.Raw = _ANY
    object: msgspec.Raw = _ANY
    created: msgspec.Raw = _ANY
    model: msgspec.Raw = _ANY
    system_fingerprint: msgspec.Raw = _ANY
    service_tier: msgspec.Raw = _ANY
    provider: msgspec.Raw = _ANY
    obfuscation: msgspec.Raw = _ANY
    error: None = None
    usage: None = None


class Piece(msgspec.Struct, gc=False):
    """A choice that goes on, whatever it brings; an empty finish reason is none."""

    index: int = 0
    finish_reason: Literal[""] | None = None
    usage: None = None


class Passing(msgspec.Struct, gc=False):
    """It may bring anything, but no finish reason, no usage and no error."""

    choices: tuple[Piece]
    error: None = None
    usage: None = None
    x_groq: None = None


class OpeningDelta(msgspec.Struct, gc=False):
    """A role, a text, or nothing; whatever else counts as output is absent or null."""

    content: str | None = None
    reasoning: None = None
    reasoning_content: None = None
    reasoning_details: None = None
    refusal: None = None
    audio: None = None
    images: None = None
    tool_calls: None = None
    function_call: None = None


class OpeningChoice(msgspec.Struct, gc=False):
    """A choice that begins, or goes on."""

    delta: OpeningDelta
    index: Annotated[int, msgspec.Meta(ge=0)] = 0
    finish_reason: Literal[""] | None = None
    message: None = None
    text: None = None
    usage: None = None


class Opening(msgspec.Struct, gc=False):
    """It says nothing about its stream but that this goes on: no finish reason, no usage and no error."""

    choices: tuple[OpeningChoice]
    error: None = None
    usage: None = None
    x_groq: None = None


class _Unused(msgspec.Struct):
    """An event that has choices, and says in so many words that it has no usage."""

    usage: None
    choices: Annotated[list[msgspec.Raw], msgspec.Meta(min_length=1)]


_DECODER: Final = msgspec.json.Decoder(_Event)
_BARE: Final = msgspec.json.Decoder(_Bare)
_UNUSED: Final = msgspec.json.Decoder(_Unused)
_NO_USAGE: Final = b',"usage":null'

UNREAD: Final = (msgspec.DecodeError, RecursionError)
"""What a decoder of this module raises for every other text than its own."""
passing: Final = msgspec.json.Decoder(Passing).decode
"""Reads an event that has one choice and says nothing about its stream. Raises `UNREAD` for every other text.

No function around it: this is run for every event of every stream."""
opening: Final = msgspec.json.Decoder(Opening).decode
"""Reads an event as nearly all streams begin by: one choice, with a role or a text. Raises `UNREAD` for other texts."""


def plain_text(data: bytes) -> tuple[int, str] | None:
    """Return index and text of the only choice of an event that brings text alone; None for every other event.

    No role, no reasoning, no call, no finish reason, no error, and JSON that the fast codec takes. Never raises.
    """
    try:
        choice = _DECODER.decode(data).choices[0]
    except UNREAD:
        return None
    return choice.index, choice.delta.content


def is_bare_text(data: bytes) -> bool:
    """Whether `plain_text` is all that an event has to say: without it, it tells a client nothing. Never raises."""
    try:
        _BARE.decode(data)
    except UNREAD:
        return False
    return True


def without_null_usage(data: bytes) -> bytes | None:
    """Return *data* without the ``"usage":null`` that many upstreams put on every event with choices, and tightly so.

    None for every other text. What is returned is what cutting the member out by the grammar gives. Never raises.
    """
    at = data.find(_NO_USAGE)
    if at < 0 or data.count(b'"usage"') != 1:  # one key alone, so it is the event's own, as read below
        return None
    try:
        _UNUSED.decode(data)
    except UNREAD:
        return None
    return data[:at] + data[at + len(_NO_USAGE) :]
