"""What the guard reads from, and takes out of, a decoded chat chunk or completion. Tolerant: odd shapes are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# A chunk that carries nothing but these and empty choices says nothing to a client.
_ENVELOPE: Final = frozenset(
    {"id", "object", "created", "model", "system_fingerprint", "service_tier", "provider", "obfuscation", "choices"}
)


@dataclass(frozen=True, slots=True)
class Piece:
    """One choice of one event. *other* = output that is not content; *structured* = real tool calls."""

    index: int
    text: str
    other: bool
    structured: bool
    finished: bool


def pieces(event: object, part: str = "delta") -> Iterator[Piece]:
    """Yield a piece for every choice; *part* is ``delta`` for chunks and ``message`` for completions."""
    for choice in _choices(event):
        body = choice.get(part)
        body = body if isinstance(body, dict) else {}
        structured = bool(body.get("tool_calls") or body.get("function_call"))
        yield Piece(
            index=_index(choice),
            text=_text(body.get("content")),
            other=any(value for key, value in body.items() if key not in {"role", "content"}),
            structured=structured,
            finished=choice.get("finish_reason") is not None,
        )


def is_error(event: object) -> bool:
    """Whether the event reports a failure; ``"error": null`` does not."""
    return isinstance(event, dict) and bool(event.get("error"))


def without_text(event: dict[str, object], leaked: frozenset[int], part: str = "delta") -> dict[str, object]:
    """Return a copy of *event* without the content (and its logprobs) of the choices in *leaked*."""
    choices = event.get("choices")
    kept = [_silenced(choice, leaked, part) for choice in choices] if isinstance(choices, list) else choices
    return {**event, "choices": kept}


def is_silent(event: dict[str, object]) -> bool:
    """Whether a chunk would tell the client nothing: no delta, no finish reason, no usage."""
    if any(value for key, value in event.items() if key not in _ENVELOPE):
        return False
    for choice in _choices(event):
        delta = choice.get("delta")
        if choice.get("finish_reason") is not None or (isinstance(delta, dict) and any(delta.values())):
            return False
    return True


def _silenced(choice: object, leaked: frozenset[int], part: str) -> object:
    if not isinstance(choice, dict) or _index(choice) not in leaked or not isinstance(choice.get(part), dict):
        return choice
    body = {**choice[part]}
    if isinstance(body.get("content"), list):
        body["content"] = [item for item in body["content"] if not _part_text(item)]
    elif part == "message" or "role" in body:
        body["content"] = ""
    else:
        body.pop("content", None)
    edited = {**choice, part: body}
    return {**edited, "logprobs": None} if "logprobs" in edited else edited


def _choices(event: object) -> Iterator[dict[str, object]]:
    choices = event.get("choices") if isinstance(event, dict) else None
    if isinstance(choices, list):
        yield from (choice for choice in choices if isinstance(choice, dict))


def _index(choice: dict[str, object]) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(map(_part_text, content))
    return content if isinstance(content, str) else ""


def _part_text(item: object) -> str:
    text = item.get("text") if isinstance(item, dict) else None
    return text if isinstance(text, str) else ""
