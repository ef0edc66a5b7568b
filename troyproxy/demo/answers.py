"""What the demo provider says: text or one tool call, by a rule a reader can predict.

A tool is called when ``tool_choice`` is ``required`` (the first one) or names it; otherwise when the last message is
the user's and contains the tool's name, or a word of it of four letters or more: "what is the weather in Paris?" calls
``get_weather``. Arguments come from the schema: the required properties, or all when none is; strings are the last word
of the message ("Paris"), numbers the first number in it, choices the first choice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from troyproxy.demo.asks import Ask, Tool
from troyproxy.demo.faults import Kind

THOUGHT: Final = "The demo provider pretends to think about it. "
ECHO_LIMIT: Final = 200
MAX_ARGUMENTS: Final = 32
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\w+")
_PIECE: Final = re.compile(r"\s*\S+|\s+")


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: pieces are what a stream sends one by one."""

    pieces: tuple[str, ...] = ()
    thoughts: tuple[str, ...] = ()
    tool: str | None = None
    """The tool that is called; then `pieces` are its arguments."""
    finish: str = "stop"

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def tokens(self) -> int:
        """Completion tokens, thoughts included: one a piece."""
        return len(self.pieces) + len(self.thoughts)


def answer_to(ask: Ask, kind: Kind, headers: Mapping[str, str]) -> Answer:
    """Return the answer to *ask*; *headers* are for the echo."""
    if kind is Kind.ECHO:
        return Answer((json.dumps({"headers": headers, "body": ask.body}),))
    tool = chosen_tool(ask, force=kind is Kind.LEAK)
    thoughts = pieces_of(THOUGHT) if ask.reasons else ()
    if tool is not None:
        arguments = json.dumps(arguments_for(tool, ask.text))
        if kind is Kind.LEAK:
            return Answer(pieces_of(f"<function={tool.name}>{arguments}</function>"), thoughts)
        return Answer(pieces_of(arguments), thoughts, tool.name, "tool_calls")
    pieces = pieces_of(_text(ask))
    if ask.limit is not None and ask.limit < len(pieces):
        return Answer(pieces[: ask.limit], thoughts, finish="length")
    return Answer(pieces, thoughts)


def pieces_of(text: str) -> tuple[str, ...]:
    """Cut *text* before each word; joined, the pieces are the text."""
    return tuple(_PIECE.findall(text))


def _text(ask: Ask) -> str:
    said = ask.text[:ECHO_LIMIT]
    if ask.wants_json:
        return json.dumps({"answer": "Hello from the demo provider!", "you_said": said})
    if ask.role == "tool":
        return f"The tool said: {said}"
    return f'Hello from the demo provider! You said: "{said}". No model was harmed in the making of this answer.'


def chosen_tool(ask: Ask, *, force: bool = False) -> Tool | None:
    """Return the tool that *ask* calls for, by the rule above; with *force* the first one if the rule names none."""
    if ask.tool_choice == "none" or not ask.tools:
        return None
    named = next((tool for tool in ask.tools if tool.name == ask.tool_choice), None)
    if named is None and ask.role == "user":
        named = next((tool for tool in ask.tools if _fits(tool.name, ask.text)), None)
    return named or (ask.tools[0] if force or ask.tool_choice == "required" else None)


def _fits(name: str, text: str) -> bool:
    words = {word for word in _words(name) if len(word) >= 4}
    return bool(words & _words(text)) or name.lower() in text.lower()


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text.replace("_", " "))}


def arguments_for(tool: Tool, text: str) -> dict[str, object]:
    """Return arguments that fit the tool's schema, as far as it says."""
    properties = tool.schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    required = tool.schema.get("required")
    names = [n for n in required if n in properties] if isinstance(required, list) and required else list(properties)
    return {name: _value(properties[name], text) for name in names[:MAX_ARGUMENTS]}


def _value(schema: object, text: str) -> object:
    schema = schema if isinstance(schema, dict) else {}
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    if "default" in schema:
        return schema["default"]
    number = re.search(r"\d{1,9}", text)
    words = re.findall(r"[^\W_]+", text)
    values: dict[object, object] = {
        "integer": int(number[0]) if number else 1,
        "number": float(number[0]) if number else 1.0,
        "boolean": True,
        "array": [],
        "object": {},
        "null": None,
    }
    return values.get(str(schema.get("type")), words[-1] if words else "demo")
