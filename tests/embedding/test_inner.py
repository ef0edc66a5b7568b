"""The wrapped app as an upstream (`app: inner`), and clients that leave, however the host hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint  # noqa: TID251 -- a host's
from starlette.requests import Request
from starlette.responses import Response

from tests.asgi import AfterSent, App, Message, Receive, Scope, Send, drive, http_scope, post
from tests.asgi import request_body as body_of
from tests.embedding.hosts import JSON, Wrap, inner_config, raw_host
from tests.middleware.apps import DONE, LEAK, STOP, TOOLS, ask, contents, delta, stream_app

pytestmark = pytest.mark.anyio


async def test_the_wrapped_app_itself_may_serve(tmp_path: Path, wrap: Wrap) -> None:
    host = stream_app(delta("from inside"), STOP, DONE)
    app = wrap(host, config=inner_config(tmp_path))
    async with app.gateway:
        exchange = await post(app, ask(model="mine/m1", stream=True))
    assert (exchange.body, host.scopes[-1]["path"]) == (delta("from inside") + STOP + DONE, "/v1/chat/completions")


async def test_a_disconnect_reaches_the_wrapped_app(tmp_path: Path, wrap: Wrap) -> None:
    left = asyncio.Event()
    app = wrap(slow_upstream(left), config=inner_config(tmp_path))
    async with app.gateway:
        scope = http_scope(headers=JSON)
        await drive(
            app, scope, [*body_of(ask(model="mine/m1", stream=True)), AfterSent(2), {"type": "http.disconnect"}]
        )
        await asyncio.wait_for(left.wait(), 1)
    assert left.is_set()


def slow_upstream(left: asyncio.Event) -> App:
    """Return an upstream that sends one chunk and then only listens for the client's leaving."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": delta("Hi"), "more_body": True})
        assert (await receive())["type"] == "http.disconnect"
        left.set()

    return app


async def test_a_client_that_has_left_as_asgi_2_4_says_it_ends_the_upstream(tmp_path: Path, wrap: Wrap) -> None:
    left, script = asyncio.Event(), [*body_of(ask(model="mine/m1", stream=True))]

    async def receive() -> Message:
        if script and isinstance(step := script.pop(0), dict):
            return step
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            raise OSError("the client has gone")

    app = wrap(slow_upstream(left), config=inner_config(tmp_path))
    scope = {**http_scope(headers=JSON), "asgi": {"version": "3.0", "spec_version": "2.4"}}
    async with app.gateway:
        await app(scope, receive, send)
        await asyncio.wait_for(left.wait(), 1)
    assert left.is_set()


class Untouched(BaseHTTPMiddleware):
    """What hosts put around their apps."""

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        return await call_next(request)


class Reading(BaseHTTPMiddleware):
    """One that reads the body before us."""

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        await request.body()
        return await call_next(request)


def silent_upstream(left: asyncio.Event) -> App:
    """Return an upstream that never answers."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, send
        await receive()
        assert (await receive())["type"] == "http.disconnect"
        left.set()

    return app


@pytest.mark.parametrize("around", [Untouched, Reading])
@pytest.mark.parametrize(("upstream", "sent"), [(slow_upstream, 2), (silent_upstream, 0)])
async def test_behind_a_base_http_middleware_a_client_that_leaves_ends_the_upstream(
    around: type[BaseHTTPMiddleware],
    upstream: Callable[[asyncio.Event], App],
    sent: int,
    tmp_path: Path,
    wrap: Wrap,
) -> None:
    left = asyncio.Event()
    app = wrap(upstream(left), config=inner_config(tmp_path))
    script = [*body_of(ask(model="mine/m1", stream=True)), AfterSent(sent), {"type": "http.disconnect"}]
    async with app.gateway:
        await drive(around(app), http_scope(headers=JSON), script)  # without "No response returned."
        await asyncio.wait_for(left.wait(), 1)
    assert left.is_set()


async def test_behind_a_base_http_middleware_a_stream_is_whole(wrap: Wrap) -> None:
    app = wrap(raw_host)
    async with app.gateway:
        exchange = await post(Untouched(app), ask(model="demo", stream=True))
    assert exchange.body.endswith(DONE)


@pytest.mark.parametrize(("mode", "left", "named"), [("off", LEAK, None), ("suppress", "", "F01;suppressed")])
async def test_the_leak_mode_of_a_provider_holds_for_what_it_serves(
    mode: str, left: str, named: str | None, tmp_path: Path, wrap: Wrap
) -> None:
    config = inner_config(tmp_path)
    config.write_text(config.read_text().replace("auth: none", f"auth: none, leak: {mode}"))
    app = wrap(stream_app(delta(LEAK), STOP, DONE), config=config)
    async with app.gateway:
        exchange = await post(app, ask(model="mine/m1", stream=True, tools=TOOLS))
    assert (contents(exchange.body), exchange.header("x-troy-leak")) == (left, named)
