"""The in-process adapter beyond the contract: scope, backpressure, apps that misbehave."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from tests.asgi import Receive, Scope, Send
from tests.upstream.loopback import PATIENCE_S, read
from troyproxy.catalog.providers import Provider
from troyproxy.ports import UpstreamFailed, UpstreamRequest
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.asgi import AsgiUpstream, scope_of

pytestmark = pytest.mark.anyio
REQUEST = UpstreamRequest(Provider(id="p", app="x:y"), "POST", "/chat/completions", ((b"x", b"1"),), b"{}")
START = {"type": "http.response.start", "status": 200, "headers": []}


def part(body: bytes, *, more: bool = True) -> dict[str, object]:
    return {"type": "http.response.body", "body": body, "more_body": more}


def test_an_app_without_a_base_url_serves_v1() -> None:
    scope = scope_of(REQUEST)
    assert (scope["path"], scope["raw_path"], scope["server"]) == (
        "/v1/chat/completions",
        b"/v1/chat/completions",
        ("asgi", 80),
    )


def test_a_base_url_names_path_host_and_query() -> None:
    provider = Provider(id="p", app="x:y", base_url="http://inner:81/api%20x/", query=(("a", "1"),))
    scope = scope_of(structs.replace(REQUEST, provider=provider))
    assert (scope["path"], scope["raw_path"], scope["query_string"], scope["server"]) == (
        "/api x/chat/completions",
        b"/api%20x/chat/completions",
        b"a=1",
        ("inner", 81),
    )


def test_the_scope_has_framing_of_its_own() -> None:
    assert scope_of(structs.replace(REQUEST, headers=((b"host", b"evil"), (b"x", b"1"))))["headers"] == [
        (b"host", b"asgi"),
        (b"content-length", b"2"),
        (b"x", b"1"),
    ]


async def test_an_app_is_not_ahead_of_its_reader() -> None:
    sent = 0

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        nonlocal sent
        await send(dict(START))
        for _ in range(100):
            await send(part(b"x"))
            sent += 1
        await send(part(b"", more=False))

    upstream = AsgiUpstream(app)
    response = await upstream.send(REQUEST)
    for _ in range(50):
        await asyncio.sleep(0)
    ahead = sent
    assert (ahead, len(await read(response))) == (1, 100)
    await upstream.aclose()


async def test_a_deaf_app_is_cancelled_after_the_grace() -> None:
    cancelled = asyncio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        try:
            await send(dict(START))
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    upstream = AsgiUpstream(app, grace_s=0)
    response = await upstream.send(REQUEST)
    await response.aclose()
    assert await asyncio.wait_for(cancelled.wait(), PATIENCE_S)


async def test_an_app_that_only_sends_is_cancelled_too() -> None:
    ended = asyncio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        try:
            await send(dict(START))
            while True:
                await send(part(b"x"))
        finally:
            ended.set()

    upstream = AsgiUpstream(app, grace_s=0)
    response = await upstream.send(REQUEST)
    await response.aclose()
    assert await asyncio.wait_for(ended.wait(), PATIENCE_S)


async def test_work_behind_a_complete_response_is_not_cancelled() -> None:
    done = asyncio.Event()
    go_on = asyncio.Event()

    async def later() -> None:
        await go_on.wait()
        done.set()

    async def endpoint(_request: Request) -> PlainTextResponse:
        return PlainTextResponse("ok", background=BackgroundTask(later))

    app = Starlette(routes=[Route("/v1/chat/completions", endpoint, methods=["POST"])])
    upstream = AsgiUpstream(app, grace_s=0)
    await read(await upstream.send(REQUEST))
    go_on.set()
    assert await asyncio.wait_for(done.wait(), PATIENCE_S)
    await upstream.aclose()


async def test_a_starlette_stream_hears_the_disconnect() -> None:
    ended = asyncio.Event()

    async def endless() -> object:
        try:
            yield b"data: 1\n\n"
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def endpoint(_request: Request) -> StreamingResponse:
        return StreamingResponse(endless())  # type: ignore[arg-type]  # an iterator of bytes

    app = Starlette(routes=[Route("/v1/chat/completions", endpoint, methods=["POST"])])
    upstream = AsgiUpstream(app, grace_s=PATIENCE_S)
    response = await upstream.send(REQUEST)
    first = await anext(response.chunks())
    await response.aclose()
    await asyncio.wait_for(ended.wait(), PATIENCE_S)
    assert first == b"data: 1\n\n"
    await upstream.aclose()


async def test_closing_the_adapter_ends_every_call() -> None:
    ended = asyncio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        try:
            await send(dict(START))
            await asyncio.Event().wait()
        finally:
            ended.set()

    upstream = AsgiUpstream(app)
    response = await upstream.send(REQUEST)
    await upstream.aclose()
    with pytest.raises(UpstreamFailed):
        await read(response)
    assert ended.is_set()


async def test_an_app_that_fails_at_once_has_not_got_the_body() -> None:
    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ZeroDivisionError

    with pytest.raises(UpstreamFailed) as caught:
        await AsgiUpstream(app).send(REQUEST)
    assert (caught.value.fault, caught.value.body_sent) == (Fault.RESET, False)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


async def test_an_app_that_returns_without_an_answer_is_a_reset() -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.debug"})
        await send({"type": "http.response.body", "body": b"x"})

    with pytest.raises(UpstreamFailed) as caught:
        await AsgiUpstream(app).send(REQUEST)
    assert caught.value.fault is Fault.RESET


async def test_an_app_that_stops_in_the_middle_is_a_cut() -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(dict(START))
        await send(part(b"x"))

    response = await AsgiUpstream(app).send(REQUEST)
    with pytest.raises(UpstreamFailed, match="without a complete answer"):
        await read(response)
