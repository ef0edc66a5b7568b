"""A gateway mounted into a host, with its lifespan wired and without."""

from __future__ import annotations

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.asgi import Exchange, Message, drive, http_scope, post
from tests.embedding.hosts import get, live
from tests.middleware.apps import ask
from troyproxy import create_app
from troyproxy.api.gateway import Gateway
from troyproxy.app import Wiring
from troyproxy.settings.load import load

pytestmark = pytest.mark.anyio


def mountable(options: dict[str, object]) -> Gateway:
    env = {f"TROY_{name.upper()}": str(value) for name, value in options.items()}
    return create_app(load({**env, "TROY_AUTH": "off"}), wiring=Wiring(demo=True))


async def test_a_mounted_gateway_starts_with_its_host_when_it_is_wired(
    options: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    gateway = mountable(options)
    app = Starlette(routes=[Mount("/llm", gateway)], lifespan=gateway.lifespan)
    answered: list[Exchange] = []

    async def meanwhile(message: Message) -> None:
        if message["type"] == "lifespan.startup.complete":
            answered.append(await post(app, ask(model="demo"), "/llm/v1/chat/completions"))

    await live(app, meanwhile)
    assert ([exchange.status for exchange in answered], gateway.life.started) == ([200], False)
    assert "starts with its first request" not in caplog.text


async def test_a_mounted_gateway_without_wiring_starts_on_the_first_request_and_warns_once(
    options: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    gateway = mountable(options)
    app = Starlette(routes=[Mount("/llm", gateway)])
    exchanges = await asyncio.gather(
        *(post(app, ask(model="demo"), "/llm/v1/chat/completions") for _ in range(3)), get(app, "/llm/healthz")
    )
    await gateway.life.stop()
    assert [exchange.status for exchange in exchanges] == [200] * 4
    assert sum("starts with its first request" in record.message for record in caplog.records) == 1


async def test_a_mounted_gateway_closes_a_websocket(options: dict[str, object]) -> None:
    scope = {**http_scope("/v1/chat/completions", method="GET"), "type": "websocket"}
    exchange = await drive(mountable(options), scope, [{"type": "websocket.connect"}])
    assert [message["type"] for message in exchange.sent] == ["websocket.close"]
