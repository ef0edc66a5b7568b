"""When the guard has anything to do: tools are offered and a call is allowed. Never raises on odd shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from troyproxy.leaks.asked import Asked, Inputs
from troyproxy.leaks.options import Options

_DEFAULT: Final = Options()
_NO_SCHEMA: Final[Mapping[str, object]] = MappingProxyType({})
_NONE: Final[frozenset[str]] = frozenset()
_JSON_FORMATS: Final = frozenset({"json_object", "json_schema"})


def asked(payload: Mapping[str, object], options: Options = _DEFAULT) -> Asked | None:
    """Return what a chat request tells the guard, or None when the guard must stay off.

    Off: no `tools` (nor legacy `functions`), or `tool_choice` (`function_call`) is ``none``; the options
    `scrub_when_none` and `scrub_with_history` arm it for special tokens in these two cases. Tools without a name
    (built-in ones) arm the guard for special tokens.
    """
    if not isinstance(payload, dict):
        return None
    offered = [*_allowed(payload, "tools", "tool_choice"), *_allowed(payload, "functions", "function_call")]
    if offered:
        return _asked(payload, offered)
    declared = [*_list(payload, "tools"), *_list(payload, "functions")]
    if declared:
        return _scrubbing(payload, _schemas(declared), known=False) if options.scrub_when_none else None
    called = frozenset(_called(payload)) if options.scrub_with_history else None
    return _scrubbing(payload, dict.fromkeys(called, _NO_SCHEMA), known=True) if called else None


def _asked(payload: Mapping[str, object], offered: list[object]) -> Asked:
    schemas = _schemas(offered)
    return Asked(
        names=frozenset(schemas),
        schemas=schemas,
        forced=_forced(payload),
        barred=_barred(payload, offered, schemas),
        parallel=payload.get("parallel_tool_calls") is not False,
        json_answer=_json_answer(payload),
        legacy=not _list(payload, "tools"),
        inputs=Inputs(payload),
    )


def _scrubbing(payload: Mapping[str, object], schemas: Mapping[str, Mapping[str, object]], *, known: bool) -> Asked:
    names = frozenset(schemas)
    return Asked(names=names, schemas=schemas, only_special=True, known_only=known, inputs=Inputs(payload))


def _allowed(payload: Mapping[str, object], field: str, choice_field: str) -> list[object]:
    choice = payload.get(choice_field)
    if isinstance(choice, dict):
        choice = choice.get("type")
    return _list(payload, field) if choice != "none" else []


def _list(payload: Mapping[str, object], field: str) -> list[object]:
    found = payload.get(field)
    return found if isinstance(found, list) else []


def _schemas(tools: list[object]) -> dict[str, Mapping[str, object]]:
    """Name and arguments schema of each tool; a name given twice keeps its first schema."""
    found: dict[str, Mapping[str, object]] = {}
    for tool in tools:
        if not isinstance(tool, dict):
            continue
        if "name" in tool or "custom" in tool:
            holders: tuple[object, ...] = (tool, tool.get("function"), tool.get("custom"))
        else:
            holders = (tool.get("function"),)  # as most are
        for holder in holders:
            if not isinstance(holder, dict):
                continue
            name = holder.get("name")
            if name and isinstance(name, str) and name not in found:
                schema = holder.get("parameters")
                found[name] = schema if isinstance(schema, dict) else {}
    return found


def _name(holder: object) -> str | None:
    name = holder.get("name") if isinstance(holder, dict) else None
    return name if isinstance(name, str) and name else None


def _forced(payload: Mapping[str, object]) -> str | None:
    choice = payload.get("tool_choice")
    if isinstance(choice, dict):
        return _name(choice.get("function")) or _name(choice.get("custom")) or _name(choice)
    return _name(payload.get("function_call"))


def _barred(payload: Mapping[str, object], offered: list[object], schemas: Mapping[str, object]) -> frozenset[str]:
    """Return the declared tools that a call from text must not be of."""
    custom = {_name(tool["custom"]) for tool in offered if isinstance(tool, dict) and "custom" in tool}
    choice = payload.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        nested = choice.get("allowed_tools")
        allowed = _schemas(_list(nested if isinstance(nested, dict) else choice, "tools"))
        custom |= schemas.keys() - allowed.keys()
    return frozenset(name for name in custom if name is not None) if custom else _NONE


def _json_answer(payload: Mapping[str, object]) -> bool:
    wanted = payload.get("response_format")
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    return isinstance(kind, str) and kind in _JSON_FORMATS


def _called(payload: Mapping[str, object]) -> Iterator[str]:
    """Yield the names of the tools that were called earlier in the conversation."""
    for message in _list(payload, "messages"):
        if not isinstance(message, dict):
            continue
        calls = message.get("tool_calls")
        made = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
        result = message if message.get("role") in ("tool", "function") else None
        for holder in (*made, message.get("function_call"), result):
            if name := _name(holder):
                yield name
