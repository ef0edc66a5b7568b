"""The short view of a request that the auto engine reads: bounded texts, counts, hints. Never raises on odd bodies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LONGEST: Final = 20_000
"""Characters of a text that are looked at, half from each end: what a task is stands at the beginning or the end."""
MOST_TOOLS: Final = 50
ROLES: Final = ("system", "developer")
"""Whose messages instruct. A tuple: an odd role may not be hashable."""


@dataclass(frozen=True, slots=True)
class Brief:
    """What a request says, shortly."""

    system: str = ""
    last: str = ""
    """The last user message."""
    messages: int = 0
    tools: tuple[str, ...] = ()
    """Names of the first tools that are offered."""
    tool_count: int = 0
    est_tokens: int = 0
    hint: str | None = None
    """The task that the caller names."""


def brief_of(payload: Mapping[str, object], *, est_tokens: int = 0, hint: str | None = None) -> Brief:
    """Return the brief of a chat request. *hint*: the caller's header, else ``metadata.task`` speaks."""
    messages = _objects(payload.get("messages"))
    tools = _objects(payload["tools"]) if "tools" in payload else []
    metadata = payload.get("metadata")
    named = metadata.get("task") if isinstance(metadata, dict) else None
    return Brief(
        system=_bounded("\n".join([_text(m) for m in messages[:3] if m.get("role") in ROLES])),
        last=_bounded(_last(messages)),
        messages=len(messages),
        tools=tuple(filter(None, map(_tool_name, tools[:MOST_TOOLS]))) if tools else (),
        tool_count=len(tools),
        est_tokens=est_tokens,
        hint=hint or (named if isinstance(named, str) else None),
    )


def _objects(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _last(messages: list[dict[str, object]]) -> str:
    """Return the text of the user's last message."""
    for message in reversed(messages):
        if message.get("role") == "user":
            return _text(message)
    return ""


def _text(message: Mapping[str, object]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in _objects(content))
    return "\n".join(text for text in texts if isinstance(text, str))


def _tool_name(tool: Mapping[str, object]) -> str:
    function = tool.get("function")
    name = function.get("name") if isinstance(function, dict) else tool.get("name")
    return name[:100] if isinstance(name, str) else ""


def _bounded(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}\n{text[-half:]}"
