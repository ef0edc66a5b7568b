"""EffortResolver alone: what becomes of names, suffixes and efforts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.asgi import post
from tests.middleware.apps import RawApp, ask
from troyproxy import EffortResolver
from troyproxy.errors import ConfigError
from troyproxy.middleware import alone
from troyproxy.proxy.call import CHAT_PATH, Call

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


async def test_a_model_may_take_no_effort_or_no_sampling_beside_one() -> None:
    models: dict[str, dict[str, object]] = {
        "deaf": {"reasoning": True, "no_effort": True},
        "picky": {"reasoning": True, "no_sampling_with_effort": True},
    }
    app = RawApp()
    layer = EffortResolver(app, models)
    await post(layer, ask(model="deaf-high", reasoning_effort="low", temperature=1))
    await post(layer, ask(model="picky-high", temperature=1))
    deaf, picky = (json.loads(body) for body in app.bodies)
    assert (deaf["model"], "reasoning_effort" in deaf, deaf["temperature"]) == ("deaf", False, 1)
    assert (picky["reasoning_effort"], "temperature" in picky) == ("high", False)


def test_an_unknown_default_effort_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^default_effort: 'ultra' is unknown; allowed: none, minimal"):
        EffortResolver(RawApp(), MODELS, "ultra")


def decided(route: str, **fields: object) -> Call:
    """Return a call of the gateway, whose effort is decided; low is configured."""
    listed = alone.snapshot_of(MODELS, "low")
    call = Call("r", 0.0, 0.0, route, snapshot=listed, payload={"model": "thinker", **fields})
    EffortResolver(RawApp()).decide(call)
    return call


@pytest.mark.parametrize(("route", "level"), [(CHAT_PATH, "low"), ("/v1/completions", None), ("/v1/embeddings", None)])
def test_the_default_is_for_chat_requests(route: str, level: str | None) -> None:
    effort = decided(route).effort
    assert effort is not None
    assert effort.level == level


def test_a_suffix_that_is_overruled_is_traced() -> None:
    lines = decided(CHAT_PATH, model="thinker-high", reasoning_effort="medium").ledger.lines
    assert lines[-1] == "effort: medium (from the body), which overrules the suffix high"


def test_nothing_is_traced_of_an_effort_that_nobody_asked_for() -> None:
    assert len(decided("/v1/completions").ledger.lines) == 1


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
