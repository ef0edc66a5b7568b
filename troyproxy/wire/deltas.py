"""The commonest event of a chat stream, read at a glance: one choice, a piece of its text, and nothing else to know."""

from __future__ import annotations

from typing import Final

import msgspec


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


_DECODER: Final = msgspec.json.Decoder(_Event)


def plain_text(data: bytes) -> tuple[int, str] | None:
    """Return index and text of the only choice of an event that brings text alone; None for every other event.

    No role, no reasoning, no call, no finish reason, no error, and JSON that the fast codec takes. Never raises.
    """
    try:
        choice = _DECODER.decode(data).choices[0]
    except (msgspec.DecodeError, RecursionError):
        return None
    return choice.index, choice.delta.content
