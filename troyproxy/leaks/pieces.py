"""What the guard reads from a decoded chat chunk or completion. Tolerant: odd shapes are skipped, nothing raises."""

from __future__ import annotations

from typing import Final

import msgspec

REASONING: Final = ("reasoning_content", "reasoning")
"""The fields in which vendors send what a model thinks."""
_QUIET: Final = frozenset({"role", "content"})
_CALLS: Final = ("tool_calls", "function_call")


class Piece(msgspec.Struct, frozen=True):
    """One choice of one event."""

    index: int
    text: str = ""
    thoughts: tuple[tuple[str, str], ...] = ()
    """Field and text of the reasoning in it."""
    other: bool = False
    """It has output that is not content: reasoning, calls, a refusal, audio."""
    structured: bool = False
    """It has real tool calls."""
    finish: str | None = None
    calls: object = None
    """The real tool calls, as they are."""


def pieces(event: object, part: str = "delta") -> list[Piece]:
    """Return a piece for every choice; *part* is ``delta`` for chunks and ``message`` for completions."""
    found = []
    for choice in choices_of(event):
        body = choice.get(part)
        found.append(_piece(choice, body if isinstance(body, dict) else {}))
    return found


def _piece(choice: dict[str, object], body: dict[str, object]) -> Piece:
    finish, content = choice.get("finish_reason"), body.get("content")
    if finish is None and len(body) == 1 and isinstance(content, str):  # almost every event of a stream
        return Piece(index_of(choice), content)
    if len(body) == 2 and "role" in body and isinstance(content, str):  # most whole answers
        return Piece(index_of(choice), content, finish=finish if isinstance(finish, str) and finish else None)
    return Piece(
        index=index_of(choice),
        text=text_of(content),
        thoughts=tuple((name, text) for name in REASONING if (text := body.get(name)) and isinstance(text, str)),
        other=any(value for key, value in body.items() if key not in _QUIET),
        structured=any(body.get(name) for name in _CALLS),
        finish=finish if isinstance(finish, str) and finish else None,
        calls=body.get("tool_calls"),
    )


def is_error(event: object) -> bool:
    """Whether the event reports a failure; ``"error": null`` does not."""
    return isinstance(event, dict) and bool(event.get("error"))


def choices_of(event: object) -> list[dict[str, object]]:
    """Return the choices of an event that are objects."""
    choices = event.get("choices") if isinstance(event, dict) else None
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []


def index_of(choice: dict[str, object]) -> int:
    """Return the index of a choice; one that is missing or odd is 0."""
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def text_of(content: object) -> str:
    """Return the text of a `content`, which may be a list of parts."""
    if isinstance(content, list):
        return "".join(map(part_text, content))
    return content if isinstance(content, str) else ""


def part_text(item: object) -> str:
    """Return the text of one part of a content."""
    text = item.get("text") if isinstance(item, dict) else None
    return text if isinstance(text, str) else ""
