"""Preflight alone: the app is the only member."""

from __future__ import annotations

import pytest

from tests.asgi import post
from tests.middleware.apps import TOOLS, RawApp, ask
from troyproxy import Preflight

pytestmark = pytest.mark.anyio

MODELS: dict[str, dict[str, object]] = {
    "small": {"context": 100, "tools": True, "aliases": ["tiny"]},
    "text": {"tools": False, "vision": False, "context": 0},
}
IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}]
LONG = [{"role": "user", "content": "word " * 500}]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"model": "text", "tools": TOOLS}, "no-tools"), ({"model": "text", "messages": IMAGE}, "no-vision")],
)
async def test_what_the_model_cannot_do_is_refused_before_the_app(fields: dict[str, object], reason: str) -> None:
    exchange = await post(Preflight(app := RawApp(), MODELS), ask(**fields))
    error = exchange.json()["error"]
    assert (exchange.status, error["code"], app.scopes) == (503, "no_eligible_member", [])
    assert error["details"] == [{"member": "text", "reason": reason}]


@pytest.mark.parametrize("model", ["small", "tiny", "small-high"])
async def test_a_request_that_is_too_long_says_so_in_the_words_that_agents_know(model: str) -> None:
    exchange = await post(Preflight(RawApp(), MODELS), ask(model=model, messages=LONG))
    error = exchange.json()["error"]
    assert (exchange.status, error["code"], exchange.header("x-should-retry")) == (
        503,
        "context_length_exceeded",
        "false",
    )
    assert error["message"].startswith("This model's maximum context length is 100 tokens")


@pytest.mark.parametrize(
    "fields",
    [{"model": "text"}, {"model": "text", "messages": LONG}, {"model": "who", "tools": TOOLS, "messages": IMAGE}],
)
async def test_what_is_possible_or_unknown_passes(fields: dict[str, object]) -> None:
    assert (await post(Preflight(RawApp(), MODELS), ask(**fields))).status == 200


@pytest.mark.parametrize("messages", ["hi", None, {"role": "user"}])
async def test_messages_that_are_no_list_are_refused(messages: object) -> None:
    exchange = await post(Preflight(app := RawApp()), ask(messages=messages))
    assert (exchange.status, exchange.json()["error"]["param"], app.scopes) == (400, "messages", [])
