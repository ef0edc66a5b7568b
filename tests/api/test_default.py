"""``default`` through HTTP: who serves a chat and who a tool turn, by preference, capability, health and drift."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.api.house import NO_DEMO, House, build
from tests.asgi import Exchange
from tests.fakes import FakeClock, FakeResponse, Reply
from tests.proxy.rig import COMPLETION
from troyproxy.app import Wiring
from troyproxy.ports import UpstreamRequest, UpstreamResponse

pytestmark = pytest.mark.anyio

OPEN, ON_GROQ = "open-key-0123456789", "groq-key-0123456789"
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
JSON = ((b"content-type", b"application/json"),)
MODELS = {
    "plain": "{chat: {tools: false}}",
    "vague": "{able: {}}",
    "groq": "{llama-3.3-70b-versatile: {}}",
    "google": "{gemini-2.5-flash: {}}",
    "openai": "{gpt-4o: {}}",
}
LEAK = {
    **COMPLETION,
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": '<function=weather>{"city": "Rome"}</function>'},
            "finish_reason": "stop",
        }
    ],
}


class Answering:
    """An upstream where everybody answers *body*; *sick*: who answers with which status instead."""

    def __init__(self) -> None:
        self.sick: dict[str, int] = {}
        self.leaks: set[str] = set()
        self.bodies: list[dict[str, object]] = []

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        self.bodies.append(json.loads(request.body))
        status = self.sick.get(request.provider.id, 200)
        body = LEAK if request.provider.id in self.leaks else COMPLETION
        said = body if status == 200 else {"error": {"message": "slow down", "type": "rate_limit_error"}}
        return FakeResponse(Reply(status, [json.dumps(said).encode()], JSON))

    async def aclose(self) -> None:
        """Nothing is open."""


class Turns:
    """Gateways with some of the providers, and how to take turns with them."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self._folder, self._stack = folder, stack
        self.upstream = Answering()
        self._house: House

    async def configure(self, *providers: str, **settings: object) -> None:
        """Start a gateway that has these providers, in this order."""
        entries = "\n".join(
            f"  {name}: {{base_url: 'http://127.0.0.1:9/v1', models: {MODELS[name]}, "
            f"accounts: [{{name: A, api_key: {name}-secret}}]}}"
            for name in providers
        )
        keys = f"keys: [{{name: open, key: {OPEN}}}, {{name: groq, key: {ON_GROQ}, provider: groq}}]"
        text = f"{NO_DEMO}providers:\n{entries}\n{keys}\n"
        clock = FakeClock(manual=True)
        self._house = build(self._folder, clock, wiring=Wiring(upstream=self.upstream), text=text, **settings)
        await self._stack.enter_async_context(self._house.gateway)

    async def take(self, *, tools: bool = False, key: str = OPEN, model: str = "default", **headers: str) -> Exchange:
        body: dict[str, object] = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
        if tools:
            body["tools"] = [WEATHER]
        return await self._house.post("/v1/chat/completions", body, authorization=f"Bearer {key}", **headers)

    async def served(self, *, tools: bool = False, key: str = OPEN, **headers: str) -> str:
        """Take a turn and return the provider that served."""
        answer = await self.take(tools=tools, key=key, **headers)
        assert answer.status == 200, answer.body
        return (answer.header("x-troy-model") or "").partition("/")[0]


@pytest.fixture
async def turns(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Turns]:
    async with AsyncExitStack() as stack:
        yield Turns(tmp_path, stack)


# --- the four practical outcomes ---


@pytest.mark.parametrize("only", MODELS)
async def test_a_chat_goes_to_whoever_is_configured(turns: Turns, only: str) -> None:
    await turns.configure(only)
    assert await turns.served() == only


@pytest.mark.parametrize("able", ["openai", "google"])
async def test_a_tool_turn_goes_to_openai_or_google_where_one_is_configured(turns: Turns, able: str) -> None:
    await turns.configure("plain", "vague", "groq", able)
    assert await turns.served(tools=True) == able


async def test_with_groq_alone_a_tool_turn_goes_to_groq_and_is_guarded(turns: Turns) -> None:
    await turns.configure("groq")
    turns.upstream.leaks.add("groq")
    answer = await turns.take(tools=True)
    assert answer.header("x-troy-model") == "groq/llama-3.3-70b-versatile"
    assert (answer.header("x-troy-leak") is not None, b"<function=" in answer.body) == (True, False)


async def test_while_groq_cools_a_tool_turn_goes_to_openai(turns: Turns) -> None:
    await turns.configure("groq", "openai")
    turns.upstream.sick["groq"] = 429
    assert await turns.served(x_troy_provider="groq") == "openai"
    turns.upstream.sick.clear()
    answer = await turns.take(tools=True, x_troy_provider="groq")
    assert answer.header("x-troy-model") == "openai/gpt-4o"
    assert answer.header("x-troy-skipped") == "groq/llama-3.3-70b-versatile=cooldown"


# --- preferences ---


async def test_header_then_key_then_setting_then_file_order(turns: Turns) -> None:
    await turns.configure("vague", "plain", "groq", "openai", default_provider="plain")
    by_header = await turns.served(key=ON_GROQ, x_troy_provider="OpenAI")
    by_key, by_setting = await turns.served(key=ON_GROQ), await turns.served()
    assert (by_header, by_key, by_setting) == ("openai", "groq", "plain")


async def test_without_a_preference_file_order_decides_a_chat(turns: Turns) -> None:
    await turns.configure("vague", "openai")
    assert await turns.served() == "vague"


async def test_a_preference_comes_before_openai_on_tool_turns_too(turns: Turns) -> None:
    await turns.configure("openai", "google", "vague")
    assert await turns.served(tools=True, x_troy_provider="vague") == "vague"


async def test_an_unknown_preference_is_400_that_names_the_header(turns: Turns) -> None:
    await turns.configure("openai")
    answer = await turns.take(x_troy_provider="nobody")
    assert (answer.status, answer.json()["error"]["param"]) == (400, "x-troy-provider")


async def test_the_model_is_the_providers_default(turns: Turns) -> None:
    await turns.configure("openai")
    await turns.take()
    assert turns.upstream.bodies[0]["model"] == "gpt-4o"


# --- who cannot ---


@pytest.mark.parametrize("headers", [{}, {"x_troy_wants_tools": "1"}])
async def test_a_provider_without_tools_is_passed_over_and_named(turns: Turns, headers: dict[str, str]) -> None:
    await turns.configure("plain", "vague", default_provider="plain")
    answer = await turns.take(tools=not headers, **headers)
    assert (answer.header("x-troy-model"), answer.header("x-troy-skipped")) == ("vague/able", "plain/chat=no-tools")


async def test_where_nobody_has_tools_the_503_says_so(turns: Turns) -> None:
    await turns.configure("plain")
    answer = await turns.take(tools=True)
    error = answer.json()["error"]
    assert (answer.status, error["code"]) == (503, "no_eligible_member")
    assert error["details"] == [{"member": "plain/chat", "reason": "no-tools"}]


async def test_tools_that_come_later_need_a_provider_that_is_known_to_have_them_when_doubt_is_denied(
    turns: Turns,
) -> None:
    await turns.configure("vague", "openai", unknown_capability="deny")
    assert await turns.served(x_troy_provider="vague", x_troy_wants_tools="1") == "openai"
    assert await turns.served(x_troy_provider="vague") == "vague"


# --- who drifts ---


async def test_a_model_marked_as_drifting_comes_last_on_tool_turns_only(turns: Turns) -> None:
    await turns.configure("groq", "vague", default_provider="groq")
    assert (await turns.served(tools=True), await turns.served()) == ("vague", "groq")


async def test_a_model_that_leaks_three_times_is_asked_last_on_tool_turns(turns: Turns) -> None:
    await turns.configure("vague", "openai", default_provider="vague")
    turns.upstream.leaks.add("vague")
    for _ in range(3):
        assert await turns.served(tools=True) == "openai"
    asked = len(turns.upstream.bodies)
    turns.upstream.leaks.clear()
    assert (await turns.served(tools=True), len(turns.upstream.bodies) - asked) == ("openai", 1)
    assert await turns.served() == "vague"
