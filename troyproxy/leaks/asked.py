"""What one request tells the guard: the tools, whether a call is allowed, and the texts a model may be quoting.

Made by `arming.asked`. It reads the payload it was made from only when the echo check asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

_NO_SCHEMAS: Final[Mapping[str, Mapping[str, object]]] = MappingProxyType({})
_GAP: Final = "\0"  # stands between two texts, so that a quotation never spans them
_QUOTABLE: Final = frozenset({"system", "developer", "user", "tool", "function"})
_ESCAPES: Final = (('\\"', '"'), ("\\n", "\n"), ("\\t", "\t"), ("\\/", "/"), ("\\u003c", "<"), ("\\u003e", ">"))


@dataclass(slots=True)
class Inputs:
    """The texts and the call ids of a request's messages, collected when first asked for."""

    payload: Mapping[str, object]
    _joined: str | None = None
    _ids: frozenset[str] | None = None

    def text(self) -> str:
        """Return what the model was given to read: system, user and tool texts; JSON in them also unescaped."""
        if self._joined is None:
            self._joined = _GAP.join(_with_unescaped(self.payload))
        return self._joined

    def call_ids(self) -> frozenset[str]:
        """Return the ids of the calls that the conversation has already."""
        if self._ids is None:
            self._ids = frozenset(_call_ids(self.payload))
        return self._ids


def _call_ids(payload: Mapping[str, object]) -> Iterator[str]:
    messages = payload.get("messages")
    for message in messages if isinstance(messages, list) else ():
        calls = message.get("tool_calls") if isinstance(message, Mapping) else None
        for call in calls if isinstance(calls, list) else ():
            found = call.get("id") if isinstance(call, Mapping) else None
            if isinstance(found, str):
                yield found


def _with_unescaped(payload: Mapping[str, object]) -> Iterator[str]:
    for text in _texts(payload):
        yield text
        if "\\" in text:
            yield _unescaped(text)


def _texts(payload: Mapping[str, object]) -> Iterator[str]:
    messages = payload.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, Mapping) and message.get("role") in _QUOTABLE:
            yield from _content_texts(message.get("content"))


def _content_texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        text = part.get("text") if isinstance(part, Mapping) else None
        if isinstance(text, str):
            yield text


def _unescaped(text: str) -> str:
    """A page that reached the model inside JSON is repeated by it without the escapes."""
    for escaped, plain in _ESCAPES:
        text = text.replace(escaped, plain)
    return text.replace("\\\\", "\\")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as the guard sees it."""

    names: frozenset[str] = frozenset()
    """The declared tools; with *known_only*, the tools called earlier in the conversation."""
    schemas: Mapping[str, Mapping[str, object]] = field(default_factory=lambda: _NO_SCHEMAS)
    """The schema of each tool's arguments; {} where none was given."""
    forced: str | None = None
    """The one function that `tool_choice` names."""
    barred: frozenset[str] = frozenset()
    """Declared tools that a text becomes no call of: custom ones, which take no JSON, and those that `tool_choice`
    leaves out of its ``allowed_tools``."""
    parallel: bool = True
    json_answer: bool = False
    """`response_format` asks for JSON: bare JSON is the answer, never a call."""
    only_special: bool = False
    """No call is allowed: special tokens are taken out, nothing is repaired."""
    known_only: bool = False
    """Even a special token counts only with one of *names*."""
    legacy: bool = False
    """The request used `functions`, not `tools`."""
    inputs: Inputs = field(default_factory=lambda: Inputs({}), repr=False, compare=False)

    def quoted(self, text: str) -> bool:
        """Whether *text*, trimmed, stands in a message the model was given. Empty text is no quotation."""
        block = text.strip()
        return bool(block) and block in self.inputs.text()
