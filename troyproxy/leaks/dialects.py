"""Under which format a leak is counted. Several dialects share an opener; what follows it tells them apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from troyproxy.leaks.openers import SECTION
from troyproxy.leaks.table import Row

_FORMAT: Final = re.compile(r"F\d\d")


@dataclass(frozen=True, slots=True)
class _Seen:
    text: str  # the opener
    inner: tuple[str, ...]  # the formats of the openers behind it
    kind: str  # what came last
    name: str


def dialect(row: Row, shape: str, name: str) -> str:
    """Return the format id; *shape* and *name* are those of `heads.Head`."""
    rule = _RULES.get(row.format)
    seen = _Seen(row.text, tuple(_FORMAT.findall(shape)), shape.rpartition(" ")[2], name)
    return rule(seen) if rule and row.text != SECTION else row.format


def _function(seen: _Seen) -> str:
    return "F04" if seen.kind == "tags" else "F01"


def _tool_call(seen: _Seen) -> str:
    if seen.inner:
        return "F04" if seen.inner[-1] == "F01" and seen.kind == "tags" else seen.inner[-1]
    return {"array": "F13", "object": "F03"}.get(seen.kind, "F23")


def _python_tag(seen: _Seen) -> str:
    return "F06" if seen.kind in ("object", "array") else "F07"


def _mistral(seen: _Seen) -> str:
    return "F11" if seen.kind == "array" else "F12"


def _tool_calls(seen: _Seen) -> str:
    return "F24" if seen.inner else "F15"


def _begun(seen: _Seen) -> str:
    """The call-begin marker of Kimi and of DeepSeek is the same once it is folded."""
    if "F27" in seen.inner:
        return "F27"
    if seen.inner[-1:] == ("F17",):
        return "F17"
    return "F21" if ":" in seen.name else "F18"


def _function_calls(seen: _Seen) -> str:
    if not seen.text.endswith(("function_calls>", "function_calls ")):
        return "F43"
    return "F10" if seen.kind == "call" else "F44" if "F44" in seen.inner else "F43"


_RULES: Final[dict[str, Callable[[_Seen], str]]] = {
    "F01": _function,
    "F03": _tool_call,
    "F06": _python_tag,
    "F11": _mistral,
    "F15": _tool_calls,
    "F17": _begun,
    "F21": _begun,
    "F43": _function_calls,
}
