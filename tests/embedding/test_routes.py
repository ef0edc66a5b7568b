"""Around a host: exactly our routes are ours; everything else is the same, message by message."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import StreamingResponse

from tests.asgi import App, Message, Scope, Step, drive, http_scope, post
from tests.asgi import request_body as body_of
from tests.embedding.hosts import HOSTS, JSON, KEY, Wrap, get, raw_host, starlette_host
from tests.middleware.apps import DONE, LEAK, STOP, TOOLS, USAGE, ask, delta
from troyproxy import AuthGuard, EffortResolver, Preflight, ToolLeakGuard, UsageInjector

pytestmark = pytest.mark.anyio

each_host = pytest.mark.parametrize("make", HOSTS.values(), ids=HOSTS)


THEIRS = {
    "a page": http_scope("/hello", method="GET"),
    "a post": http_scope("/hello", headers={"content-type": "text/plain"}),
    "a stream": http_scope("/events", method="GET"),
    "a path under /v1 that is not ours": http_scope("/v1/host", method="GET"),
    "a path that is ours only with more behind it": http_scope("/v1/audio"),
    "a method that is not ours on a path that is passed through": http_scope("/v1/images/generations", method="GET"),
    "a path behind one that is ours": http_scope("/v1/moderations/x"),
    "a method that is not ours": http_scope("/v1/chat/completions", method="GET"),
    "nothing at all": http_scope("/nothing", method="GET"),
    "a path that begins like ours": http_scope("/v1", method="GET"),
    "admin at the root": http_scope("/api/status", method="GET"),
    "health at the root": http_scope("/healthz", method="GET"),
    "an admin path that does not exist": http_scope("/troy/nothing", method="GET"),
    "the client API under the admin prefix": http_scope("/troy/v1/models", method="GET"),
    "a path that begins like the admin prefix": http_scope("/troyan", method="GET"),
}


async def recorded(app: App, scope: Scope, script: list[Step]) -> list[tuple[str, Message]]:
    """Return every ASGI message of one exchange, with its direction, in order."""
    seen: list[tuple[str, Message]] = []
    steps = [step for step in script if isinstance(step, dict)]

    async def receive() -> Message:
        message = steps.pop(0) if steps else {"type": f"{scope['type']}.disconnect"}
        seen.append(("receive", message))
        return message

    async def send(message: Message) -> None:
        seen.append(("send", message))

    await app({**scope}, receive, send)
    return seen


@each_host
@pytest.mark.parametrize("scope", THEIRS.values(), ids=THEIRS)
async def test_a_request_of_the_hosts_is_the_same_message_by_message(
    make: Callable[[], App], scope: Scope, wrap: Wrap
) -> None:
    script = body_of(b"some text", cuts=[4])
    assert await recorded(wrap(make()), scope, script) == await recorded(make(), scope, script)


@each_host
async def test_a_websocket_is_the_same_message_by_message(make: Callable[[], App], wrap: Wrap) -> None:
    scope = {**http_scope("/v1/chat/completions", method="GET"), "type": "websocket", "subprotocols": []}
    script: list[Step] = [{"type": "websocket.connect"}, {"type": "websocket.receive", "text": "hi"}]
    assert await recorded(wrap(make()), scope, script) == await recorded(make(), scope, script)


@each_host
async def test_the_gateway_answers_beside_the_host(make: Callable[[], App], wrap: Wrap) -> None:
    app = wrap(make())
    async with app.gateway:
        exchange = await post(app, ask(model="demo"))
    assert (exchange.status, exchange.header("x-troy-model")) == (200, "demo/chat")


async def test_a_stream_of_the_gateway_passes(wrap: Wrap) -> None:
    app = wrap(starlette_host())
    async with app.gateway:
        exchange = await post(app, ask(model="demo", stream=True))
    assert exchange.body.endswith(DONE)
    assert len(exchange.chunks) > 3


PASSED: dict[str, dict[str, object]] = {
    "/v1/audio/speech": {"input": "hi", "voice": "x"},
    "/v1/images/generations": {"prompt": "a cat"},
    "/v1/moderations": {"input": "x"},
    "/v1/rerank": {"query": "a", "documents": ["a"]},
    "/v1/completions": {"prompt": "hi"},
    "/v1/embeddings": {"input": "hi"},
}


@each_host
@pytest.mark.parametrize("path", PASSED)
async def test_every_client_route_is_ours(make: Callable[[], App], wrap: Wrap, path: str) -> None:
    app = wrap(make())
    async with app.gateway:
        exchange = await post(app, {"model": "demo/chat", **PASSED[path]}, path)
        refused = await post(app, {"model": 5, **PASSED[path]}, path)
    assert (exchange.status, exchange.header("x-troy-model")) == (200, "demo/chat")
    assert (refused.status, refused.json()["error"]["param"]) == (400, "model")


async def test_an_answer_that_breaks_off_is_an_error_of_the_app(wrap: Wrap) -> None:
    app = wrap(raw_host)
    async with app.gateway:
        with pytest.raises(ConnectionError):
            await post(app, {"model": "demo/cut", "input": "a b c d"}, "/v1/audio/speech")


async def test_admin_pages_are_under_their_prefix_and_need_the_token(wrap: Wrap) -> None:
    app = wrap(raw_host)
    async with app.gateway:
        health = await get(app, "/troy/healthz")
        refused = await get(app, "/troy/api/status")
        answered = await get(app, "/troy/api/status", authorization="Bearer " + "t" * 32)
    assert (health.status, refused.status, answered.status) == (200, 401, 200)


async def test_a_wrong_method_on_an_admin_path_is_ours_to_refuse(wrap: Wrap) -> None:
    app = wrap(raw_host)
    async with app.gateway:
        exchange = await drive(app, http_scope("/troy/healthz"))
    assert (exchange.status, exchange.header("x-host")) == (405, None)


@pytest.mark.parametrize("admin_prefix", [None, "/elsewhere/"])
async def test_admin_pages_may_be_elsewhere_or_nowhere(admin_prefix: str | None, wrap: Wrap) -> None:
    app = wrap(raw_host, admin_prefix=admin_prefix)
    async with app.gateway:
        assert (await get(app, "/troy/healthz")).header("x-host") == "1"
        ours = await get(app, "/elsewhere/healthz")
    assert (ours.header("x-host") is None) == (admin_prefix is not None)


async def test_one_prefix_may_hold_both(wrap: Wrap) -> None:
    app = wrap(raw_host, prefix="/llm", admin_prefix="/llm")
    async with app.gateway:
        health, models = await get(app, "/llm/healthz"), await get(app, "/llm/v1/models")
        theirs = await get(app, "/v1/models")
    assert (health.status, models.status, theirs.header("x-host")) == (200, 200, "1")


async def test_admin_pages_may_be_at_the_root(wrap: Wrap) -> None:
    app = wrap(raw_host, admin_prefix="")
    async with app.gateway:
        health, models, theirs = await get(app, "/healthz"), await get(app, "/v1/models"), await get(app, "/hello")
    assert (health.status, models.status, theirs.header("x-host")) == (200, 200, "1")


async def test_a_prefix_below_a_mount_is_found(wrap: Wrap) -> None:
    app = wrap(raw_host, prefix="/llm")
    async with app.gateway:
        scope = {**http_scope("/site/llm/v1/chat/completions", headers=JSON), "root_path": "/site"}
        exchange = await drive(app, scope, body_of(ask(model="demo")))
    assert exchange.header("x-troy-model") == "demo/chat"


async def test_single_layers_are_middleware_of_a_fastapi_app() -> None:
    app, heard = FastAPI(openapi_url=None), list[str]()

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> StreamingResponse:
        asked = await request.json()
        assert (asked["model"], asked["reasoning_effort"]) == ("m1", "high")
        return StreamingResponse(iter([delta(LEAK), STOP, USAGE, DONE]), media_type="text/event-stream")

    app.add_middleware(UsageInjector, on_usage=lambda usage: heard.append(f"{usage.total} tokens"))
    app.add_middleware(ToolLeakGuard, mode="suppress", on_leak=lambda leak: heard.append(leak.format))
    app.add_middleware(Preflight, models={"m1": {"tools": True}})
    app.add_middleware(EffortResolver, models={"m1": {"reasoning": True}})
    app.add_middleware(AuthGuard, keys={"ci": KEY})
    body = ask(model="m1-high", stream=True, tools=TOOLS)
    exchange = await post(app, body, authorization=f"Bearer {KEY}")
    assert (exchange.body, heard) == (STOP + DONE, ["F01", "5 tokens"])
