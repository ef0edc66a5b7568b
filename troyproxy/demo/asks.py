"""A request as the demo provider sees it: a forgiving, typed view of a JSON body or a multipart form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from troyproxy.wire.multipart import Form, boundary_of, scan

MAX_CHOICES: Final = 8
_MEANT: Final[Mapping[object, object]] = {"true": True, "false": False}
TEXT_LIMIT: Final = 4000
"""Characters of a message that are looked at."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One offered function."""

    name: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Ask:
    """What was asked. `body` is the whole object, for what only one answer needs."""

    body: Mapping[str, object] = field(repr=False)
    model: str
    role: str
    """Who spoke last."""
    text: str
    """What was said last."""
    prompt_tokens: int
    tools: tuple[Tool, ...]
    tool_choice: str
    """``none``, ``auto``, ``required``, or the name of a tool."""
    stream: bool
    include_usage: bool
    limit: int | None
    choices: int
    wants_json: bool
    reasons: bool
    file_bytes: int = 0
    """The size of the first file of a form."""


def ask_of(raw: bytes, content_type: bytes = b"") -> Ask | None:
    """Return the request in *raw*, or None when it is no JSON object or form with a model."""
    try:
        form = scan(raw, boundary_of(content_type)) if content_type.startswith(b"multipart/") else None
        body: object = json.loads(raw) if form is None else _fields(form)
    except (ValueError, RecursionError):
        return None
    model = body.get("model") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(model, str):
        return None
    role, text = _last(body)
    return Ask(
        body=body,
        model=model,
        role=role,
        text=text,
        prompt_tokens=max(1, -(-len(raw) // 4)),
        tools=_tools(body.get("tools")),
        tool_choice=_tool_choice(body.get("tool_choice")),
        stream=body.get("stream") is True,
        include_usage=_mapping(body.get("stream_options")).get("include_usage") is True,
        limit=_integer(body.get("max_completion_tokens")) or _integer(body.get("max_tokens")),
        choices=min(max(1, _integer(body.get("n")) or 1), MAX_CHOICES),
        wants_json=_mapping(body.get("response_format")).get("type") in {"json_object", "json_schema"},
        reasons=body.get("reasoning_effort", "none") != "none" or bool(body.get("reasoning")),
        file_bytes=next((part.end - part.start for part in (form.parts if form else ()) if part.is_file), 0),
    )


def _fields(form: Form) -> dict[str, object]:
    """Return the fields of a form, flags and the number ``n`` as JSON would have them."""
    fields: dict[str, object] = {part.name: form.text(part.name) for part in form.parts if not part.is_file}
    number = str(fields.get("n", ""))
    counted = {"n": int(number)} if number.isdecimal() and len(number) < 5 else {}
    return {name: _MEANT.get(value, value) for name, value in fields.items()} | counted


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _last(body: Mapping[str, object]) -> tuple[str, str]:
    messages = body.get("messages")
    last = _mapping(messages[-1]) if isinstance(messages, list) and messages else {}
    said = last.get("content", body.get("prompt", body.get("input")))
    return str(last.get("role", "user")), text_of(said)[:TEXT_LIMIT]


def text_of(content: object) -> str:
    """Return the text of a content field: a string, a list of strings, or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part if isinstance(part, str) else _mapping(part).get("text") for part in content)
        return " ".join(part for part in parts if isinstance(part, str))
    return ""


def _tools(value: object) -> tuple[Tool, ...]:
    functions = (_mapping(_mapping(tool).get("function")) for tool in value) if isinstance(value, list) else ()
    return tuple(Tool(str(f["name"]), _mapping(f.get("parameters"))) for f in functions if f.get("name"))


def _tool_choice(value: object) -> str:
    named = _mapping(_mapping(value).get("function")).get("name")
    return str(named or (value if isinstance(value, str) else "auto"))
