"""EffortResolver alone: what becomes of names, suffixes and efforts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.asgi import post
from tests.middleware.apps import RawApp, ask
from troyproxy import EffortResolver
from troyproxy.errors import ConfigError

pytestmark = pytest.mark.anyio

MODELS: dict[str, dict[str, object]] = {
    "thinker": {"reasoning": True, "aliases": ["brain"]},
    "org/thinker": {"reasoning": True, "output": 10},
    "plain": {"reasoning": False},
    "vague": {},
    "fast-high": {"reasoning": True},
}


async def sent(default_effort: str | None = None, **fields: object) -> dict[str, object]:
    app = RawApp()
    await post(EffortResolver(app, MODELS, default_effort), ask(**fields))
    return app.got


@pytest.mark.parametrize(
    ("asked", "model", "effort"),
    [
        ("thinker-high", "thinker", "high"),
        ("thinker:low", "thinker", "low"),
        ("brain-medium", "thinker", "medium"),
        ("org/thinker-high", "org/thinker", "high"),
        ("brain", "thinker", None),
        ("thinker", "thinker", None),
        ("fast-high", "fast-high", None),
        ("fast-high-low", "fast-high", "low"),
        ("plain-high", "plain", None),
        ("unknown-high", "unknown-high", None),
        ("-high", "-high", None),
        ("thinker-hard", "thinker-hard", None),
        ("auto", "auto", None),
        ("auto/anything", "auto/anything", None),
    ],
)
async def test_a_name_becomes_a_model_and_an_effort(asked: str, model: str, effort: str | None) -> None:
    got = await sent(model=asked)
    assert (got["model"], got.get("reasoning_effort")) == (model, effort)


async def test_the_body_overrules_the_suffix() -> None:
    assert (await sent(model="thinker-high", reasoning_effort="low"))["reasoning_effort"] == "low"


async def test_another_spelling_becomes_the_one_field() -> None:
    got = await sent(model="thinker", reasoning={"effort": "high"})
    assert (got.get("reasoning"), got["reasoning_effort"]) == (None, "high")


@pytest.mark.parametrize(("model", "effort"), [("thinker", "low"), ("plain", None), ("vague", None), ("who", None)])
async def test_the_default_is_for_models_known_to_reason(model: str, effort: str | None) -> None:
    assert (await sent("low", model=model)).get("reasoning_effort") == effort


async def test_nothing_but_effort_is_adapted() -> None:
    extra: dict[str, Any] = {"max_tokens": 99, "tools": [], "stream": False, "stream_options": {"include_usage": True}}
    assert await sent(model="org/thinker", **extra) == ask(model="org/thinker", **extra)


@pytest.mark.parametrize("model", [None, 7, "", ["m"]])
async def test_a_model_that_is_no_name_is_the_apps_to_judge(model: object) -> None:
    assert await sent(model=model) == ask(model=model)


async def test_a_request_without_a_model_is_the_apps_to_judge() -> None:
    await post(EffortResolver(app := RawApp()), b'{"messages": []}')
    assert app.bodies == [b'{"messages": []}']


async def test_an_unknown_effort_is_refused() -> None:
    exchange = await post(EffortResolver(RawApp()), ask(reasoning_effort="enormous"))
    assert (exchange.status, exchange.json()["error"]["code"]) == (400, "invalid_effort")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"m": {"reasonning": True}}, "models.m: unknown reasonning; allowed: aliases, audio, context"),
    ({"m": {"tools": "yes"}}, "models.m.tools: 'yes' is not true or false"),
    ({"m": {"context": -1}}, "models.m.context: -1 is not a number of tokens"),
    ({"m": {"output": True}}, "models.m.output: True is not a number of tokens"),
]


@pytest.mark.parametrize(("models", "message"), WRONG)
def test_a_fact_that_does_not_exist_is_an_error(models: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        EffortResolver(RawApp(), models)
