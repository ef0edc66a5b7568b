"""When the guard has anything to do: tools are offered and a call is allowed. Never raises on odd shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def armed(payload: Mapping[str, object]) -> frozenset[str] | None:
    """Return the declared tool names of a chat request, or None when the guard must stay off.

    Off: no `tools` (nor legacy `functions`), or `tool_choice` (`function_call`) is ``none``. Tools without a name
    (built-in ones) arm the guard for special tokens.
    """
    if not isinstance(payload, Mapping):
        return None
    offered = [*_offered(payload, "tools", "tool_choice"), *_offered(payload, "functions", "function_call")]
    return frozenset(name for tool in offered for name in _names(tool)) if offered else None


def _offered(payload: Mapping[str, object], field: str, choice_field: str) -> list[object]:
    choice, tools = payload.get(choice_field), payload.get(field)
    if isinstance(choice, Mapping):
        choice = choice.get("type")
    return tools if isinstance(tools, list) and choice != "none" else []


def _names(tool: object) -> Iterator[str]:
    if isinstance(tool, Mapping):
        for holder in (tool, tool.get("function"), tool.get("custom")):
            name = holder.get("name") if isinstance(holder, Mapping) else None
            if isinstance(name, str) and name:
                yield name
