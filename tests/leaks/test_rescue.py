from __future__ import annotations

import json
from typing import Any

import pytest

from troyproxy.leaks.asked import Asked
from troyproxy.leaks.options import Options
from troyproxy.leaks.repair import Repair
from troyproxy.leaks.rescue import failed_generation, rescued_gemini, rescued_groq

ASKED = Asked(names=frozenset({"dim_lamp"}), schemas={"dim_lamp": {"required": ["id"]}})
LISTED = json.dumps(
    {"tool_calls": [{"id": "pending", "type": "function", "function": {"name": "dim_lamp"}, "parameters": {"id": 3}}]}
)
FAILED = "tool_use_failed"


def error(text: object) -> dict[str, Any]:
    """Groq's answer with status 400."""
    inner = {"message": "Failed to call a function.", "type": "invalid_request_error", "code": FAILED}
    return {"error": {**inner, "failed_generation": text}}


def arguments(found: Repair | None) -> list[Any]:
    """Return the arguments of the calls."""
    return [json.loads(call.arguments) for call in found.calls] if found else []


@pytest.mark.parametrize(
    "text",
    [
        '<function=dim_lamp>{"id": 3}</function>',
        '<function=dim_lamp {"id": 3}></function>',
        '<function=dim_lamp({"id": 3})></function>',
        '<function=dim_lamp({"id": 3})</function>',
        'dim_lamp{"id": 3}</function>',
        '{"name": "dim_lamp", "parameters": {"id": 3}}',
        '\n<tool_call>\n{"name": "dim_lamp", "arguments": {"id": 3}}\n</tool_call>',
        f"```\n{LISTED}\n```",
        f"<tool-use>\n{LISTED}\n</tool-use>",
        LISTED,
    ],
)
def test_every_spelling_groq_was_seen_to_quote_is_rescued(text: str) -> None:
    assert arguments(rescued_groq(error(text), ASKED, Options(), response_id="r")) == [{"id": 3}]


@pytest.mark.parametrize(
    "body",
    [
        *(error("The lamp is **dimmed**."), error("selected tool A does not match forced tool call name B"), error("")),
        *(error('<function=dim_lamp>{"id": 3}</function> Done.'), error('<function=dim_lamp>{"room": 3}</function>')),
        *(error('<function=dim_lamp>{"id": '), error(None), {"error": "x"}, {"error": None}, {}, [], None),
        error('<function=other>{"id": 3}</function>'),
    ],
)
def test_anything_else_is_not_rescued(body: object) -> None:
    assert rescued_groq(body, ASKED, Options(), response_id="r") is None


def test_what_the_model_wrote_is_known_from_the_error() -> None:
    assert failed_generation(error("prose")) == "prose"


@pytest.mark.parametrize(
    "message",
    [
        "Malformed function call: print(default_api.dim_lamp(id=3))",
        "Malformed function call: print(default_api.dim_lamp(id = 3))\n",
        "Malformed function call: default_api.dim_lamp(id=3)",
        "Malformed function call: call:default_api:dim_lamp{id:3}",
        "Unexpected tool call: ```tool_code\nprint(default_api.dim_lamp(id=3))\n```",
        "print(default_api.dim_lamp(id=3))",
    ],
)
def test_gemini_s_finish_message_is_rescued(message: str) -> None:
    assert arguments(rescued_gemini(message, ASKED, Options(), response_id="r")) == [{"id": 3}]


@pytest.mark.parametrize(
    "message", ["Malformed function call: 2 + 2", "", "Malformed function call: print(default_api.dim_lamp(id=x))"]
)
def test_other_finish_messages_are_not_rescued(message: str) -> None:
    assert rescued_gemini(message, ASKED, Options(), response_id="r") is None
