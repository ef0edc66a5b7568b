"""The commonest events of a chat stream, read at a glance: one choice, a piece of it, and nothing else to know."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

_ANY: Final = msgspec.Raw(b"null")


class _Delta(msgspec.Struct):
    """What else matters in a delta must be absent or null; other members are not looked at."""

    content: str
    role: None = None
    tool_calls: None = None
    function_call: None = None
    reasoning: None = None
    reasoning_content: None = None


class _Choice(msgspec.Struct):
    delta: _Delta
    index: int = 0
    finish_reason: None = None


class _Event(msgspec.Struct):
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


class _Piece(msgspec.Struct, gc=False):
    """A choice that goes on, whatever it brings; an empty finish reason is none."""

    index: int = 0
    finish_reason: Literal[""] | None = None
    usage: None = None


class _Passing(msgspec.Struct):
    choices: tuple[_Piece]
    error: None = None
    usage: None = None
    x_groq: None = None


class _Unused(msgspec.Struct):
    """An event that has choices, and says in so many words that it has no usage."""

    usage: None
    choices: Annotated[list[msgspec.Raw], msgspec.Meta(min_length=1)]


_DECODER: Final = msgspec.json.Decoder(_Event)
_PASSING: Final = msgspec.json.Decoder(_Passing)
_BARE: Final = msgspec.json.Decoder(_Bare)
_UNUSED: Final = msgspec.json.Decoder(_Unused)
_NO_USAGE: Final = b',"usage":null'


def plain_text(data: bytes) -> tuple[int, str] | None:
    """Return index and text of the only choice of an event that brings text alone; None for every other event.

    No role, no reasoning, no call, no finish reason, no error, and JSON that the fast codec takes. Never raises.
    """
    try:
        choice = _DECODER.decode(data).choices[0]
    except (msgspec.DecodeError, RecursionError):
        return None
    return choice.index, choice.delta.content


def is_bare_text(data: bytes) -> bool:
    """Whether `plain_text` is all that an event has to say: without it, it tells a client nothing. Never raises."""
    try:
        _BARE.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def passing_choice(data: bytes) -> int:
    """Return the index of the only choice of an event that says nothing about its stream; -1 for every other event.

    It may bring anything, but no finish reason, no usage and no error. Never raises.
    """
    try:
        return _PASSING.decode(data).choices[0].index
    except (msgspec.DecodeError, RecursionError):
        return -1


def without_null_usage(data: bytes) -> bytes | None:
    """Return *data* without the ``"usage":null`` that many upstreams put on every event with choices, and tightly so.

    None for every other text. What is returned is what cutting the member out by the grammar gives. Never raises.
    """
    at = data.find(_NO_USAGE)
    if at < 0 or data.count(b'"usage"') != 1:  # one key alone, so it is the event's own, as read below
        return None
    try:
        _UNUSED.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    return data[:at] + data[at + len(_NO_USAGE) :]
