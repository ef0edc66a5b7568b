"""Changed copies of a decoded chat chunk or completion: less text, other finish reasons, a choice alone or left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from troyproxy.leaks.pieces import choices_of, index_of, part_text

Event = dict[str, object]

# A chunk that carries nothing but these and empty choices says nothing to a client.
_ENVELOPE: Final = frozenset(
    {"id", "object", "created", "model", "system_fingerprint", "service_tier", "provider", "obfuscation", "choices"}
)


def cut_text(event: Event, index: int, keep: int, part: str = "delta") -> Event:
    """Return *event* with only the first *keep* characters of the content of choice *index*, and no logprobs there."""

    def edit(choice: Event) -> Event:
        body = choice.get(part)
        if not isinstance(body, dict):
            return choice
        cut = {**choice, part: _cut_body(body, keep, always=part == "message")}
        return {**cut, "logprobs": None} if "logprobs" in cut else cut

    return _with_choice(event, index, edit)


def with_field(event: Event, index: int, name: str, text: str, part: str = "delta") -> Event:
    """Return *event* with *text* in a field of choice *index*; an empty one is left out of a delta."""

    def edit(choice: Event) -> Event:
        body = choice.get(part)
        if not isinstance(body, dict):
            return choice
        body = {key: value for key, value in body.items() if text or key != name or part == "message"}
        return {**choice, part: {**body, name: text} if name in body else body}

    return _with_choice(event, index, edit)


def with_message(event: Event, index: int, members: Event) -> Event:
    """Return a completion with *members* in the message of choice *index*, in place of its own, and no logprobs."""

    def edit(choice: Event) -> Event:
        body = choice.get("message")
        edited = {**choice, "message": {**(body if isinstance(body, dict) else {}), **members}}
        return {**edited, "logprobs": None} if "logprobs" in edited else edited

    return _with_choice(event, index, edit)


def with_calls(event: Event, index: int, calls: list[object], part: str = "delta") -> Event:
    """Return *event* with other calls in choice *index*."""

    def edit(choice: Event) -> Event:
        body = choice.get(part)
        return {**choice, part: {**body, "tool_calls": calls}} if isinstance(body, dict) else choice

    return _with_choice(event, index, edit)


def with_finish(event: Event, index: int, reason: str | None) -> Event:
    """Return *event* with another finish reason of choice *index*."""
    return _with_choice(event, index, lambda choice: {**choice, "finish_reason": reason})


def alone(event: Event, index: int) -> Event:
    """Return *event* with choice *index* only, unfinished, and nothing that belongs to the end of the answer."""
    kept = [{**choice, "finish_reason": None} for choice in choices_of(event) if index_of(choice) == index]
    return {**{key: value for key, value in event.items() if key in _ENVELOPE}, "choices": kept}


def without(event: Event, index: int) -> Event:
    """Return *event* without choice *index*."""
    choices = event.get("choices")
    kept = [choice for choice in choices if not _is(choice, index)] if isinstance(choices, list) else choices
    return {**event, "choices": kept}


def delta(event: Event, index: int, body: Event) -> Event:
    """Return a chunk of our own with the envelope of *event*."""
    choice: Event = {"index": index, "delta": body, "finish_reason": None}
    return {**{key: value for key, value in event.items() if key in _ENVELOPE}, "choices": [choice]}


def roles_in(event: Event) -> set[int]:
    """Return the indexes of the choices whose role the event tells."""
    deltas = ((index_of(choice), choice.get("delta")) for choice in choices_of(event))
    return {index for index, body in deltas if isinstance(body, dict) and body.get("role")}


def is_silent(event: Event) -> bool:
    """Whether a chunk would tell the client nothing: no delta, no finish reason, no usage."""
    if any(value for key, value in event.items() if key not in _ENVELOPE):
        return False
    for choice in choices_of(event):
        delta = choice.get("delta")
        if choice.get("finish_reason") is not None or (isinstance(delta, dict) and any(delta.values())):
            return False
    return True


def _with_choice(event: Event, index: int, edit: Callable[[Event], Event]) -> Event:
    choices = event.get("choices")
    if not isinstance(choices, list):
        return event
    return {**event, "choices": [edit(choice) if _is(choice, index) else choice for choice in choices]}


def _is(choice: object, index: int) -> bool:
    return isinstance(choice, dict) and index_of(choice) == index


def _cut_body(body: Event, keep: int, *, always: bool) -> Event:
    content = body.get("content")
    if isinstance(content, list):
        return {**body, "content": _cut_parts(content, keep)}
    text = content[:keep] if isinstance(content, str) else ""
    if text or always or "role" in body:
        return {**body, "content": text}
    return {key: value for key, value in body.items() if key != "content"}


def _cut_parts(parts: list[object], keep: int) -> list[object]:
    """Return *parts* with *keep* characters of text; parts without text stay."""
    kept: list[object] = []
    for item in parts:
        text = part_text(item)
        if not text:
            kept.append(item)
        elif keep > 0 and isinstance(item, dict):
            kept.append(item if keep >= len(text) else {**item, "text": text[:keep]})
        keep -= len(text)
    return kept
