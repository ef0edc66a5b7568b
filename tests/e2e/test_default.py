"""The practical outcomes of ``default`` against a real gateway: the built-in providers, each at a scripted upstream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.e2e.gateway import Gateway, chat, run_gateway, sdk
from tests.e2e.shapes import completion
from tests.e2e.upstreams import HEALTHY, Reply, Upstreams, error, whole

WEATHER: Final = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
LEAK: Final = whole(completion('<function=weather>{"city": "Rome"}</function>'))
MODELS: Final = {"groq": "llama-3.3-70b-versatile", "openai": "gpt-4o", "google": "gemini-2.5-flash"}


@contextmanager
def house(folder: Path, upstreams: Upstreams, *names: str, **env: str) -> Iterator[Gateway]:
    """Run a gateway with these built-in providers, in this order."""
    key = {"name": "A", "api_key": "sk-up-1234567890abcdef"}
    entries = {name: {"base_url": upstreams.base_url(name), "accounts": [key]} for name in names}
    for name in names:
        upstreams.script(name, HEALTHY)
    with run_gateway(folder, {"providers": entries}, **env) as running:
        yield running


def served(gateway: Gateway, *, tools: bool = False, **headers: str) -> str:
    """Take a turn and return the spec that served."""
    answer = gateway.post(chat("default") | ({"tools": [WEATHER]} if tools else {}), **headers)
    assert answer.status == 200, answer.body
    return answer.headers["x-troy-model"]


def test_groq_alone_serves_chats_and_tool_turns_and_is_guarded(tmp_path: Path, upstreams: Upstreams) -> None:
    with house(tmp_path, upstreams, "groq") as gateway:
        assert served(gateway) == served(gateway, tools=True) == f"groq/{MODELS['groq']}"
        upstreams.script("groq", LEAK)
        answer = gateway.post(chat("default", tools=[WEATHER]))
        assert (answer.status, b"<function=" in answer.body) == (200, False)
        assert answer.headers["x-troy-leak"]


def test_a_tool_turn_goes_to_google_where_openai_is_not_and_a_chat_to_the_first(
    tmp_path: Path, upstreams: Upstreams
) -> None:
    with house(tmp_path, upstreams, "groq", "google") as gateway:
        chats, tools = served(gateway), served(gateway, tools=True)
        later = served(gateway, x_troy_wants_tools="1")
    able = f"google/{MODELS['google']}"
    assert (chats, tools, later) == (f"groq/{MODELS['groq']}", able, able)


def test_while_groq_cools_openai_serves_and_header_and_environment_are_preferred(
    tmp_path: Path, upstreams: Upstreams
) -> None:
    with ExitStack() as stack:
        gateway = stack.enter_context(house(tmp_path, upstreams, "google", "groq", "openai", AI_PROVIDER="groq"))
        assert served(gateway) == f"groq/{MODELS['groq']}"
        assert served(gateway, x_troy_provider="openai") == f"openai/{MODELS['openai']}"
        slow: Reply = error(429, retry_after="600")
        upstreams.script("groq", slow)
        served(gateway)
        before = len(upstreams.requests("groq"))
        with sdk(gateway) as client:
            answer = client.chat.completions.with_raw_response.create(**chat("default", tools=[WEATHER]))  # type: ignore[call-overload]
        assert answer.headers["x-troy-model"] == f"openai/{MODELS['openai']}"
        assert answer.headers["x-troy-skipped"] == f"groq/{MODELS['groq']}=cooldown"
        assert len(upstreams.requests("groq")) == before
