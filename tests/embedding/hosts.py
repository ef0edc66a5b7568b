"""Host apps for the gateway to live in, and ways to talk to them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from tests.asgi import AfterSent, App, Exchange, Message, Receive, Scope, Send, Step, drive, http_scope, request_body
from troyproxy import TroyProxy

Wrap = Callable[..., TroyProxy]
"""Makes an embedded gateway with the demo provider and an open door; see the fixture."""

KEY: Final = "sk-test-0123456789abcdef"
JSON: Final = {"content-type": "application/json"}
LIFESPAN: Scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
UP_AND_DOWN: list[Step] = [{"type": "lifespan.startup"}, AfterSent(1), {"type": "lifespan.shutdown"}]


async def hello(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"host: {(await request.body()).decode()}", headers={"x-host": "1"})


async def events(request: Request) -> StreamingResponse:
    del request

    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"one", b"", b"two"):
            yield piece

    return StreamingResponse(pieces())


async def socket(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text(await websocket.receive_text())
    await websocket.close()


ROUTES = [
    Route("/hello", hello, methods=["GET", "POST"]),
    Route("/events", events),
    Route("/v1/host", hello),
    Route("/v1/chat/completions", hello, methods=["GET"]),
    WebSocketRoute("/v1/chat/completions", socket),
]


def starlette_host() -> App:
    return Starlette(routes=ROUTES)


def fastapi_host() -> App:
    app = FastAPI(openapi_url=None)
    app.router.routes.extend(ROUTES)
    return app


async def raw_host(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.close", "code": 4000})
        return
    assert scope["type"] == "http"
    body = (await receive()).get("body", b"")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-host", b"1")]})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await send({"type": "http.response.body"})


HOSTS: dict[str, Callable[[], App]] = {"starlette": starlette_host, "fastapi": fastapi_host, "raw": lambda: raw_host}


async def get(app: App, path: str, **headers: str) -> Exchange:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await drive(app, http_scope(path, method="GET", headers=named), request_body())


def inner_config(folder: Path) -> Path:
    """Write a config file that makes the wrapped app an upstream, and return its path."""
    path = folder / "troyproxy.yaml"
    path.write_text("providers:\n  mine: {app: inner, auth: none, models: [m1]}\n")
    return path


def completion(content: str) -> bytes:
    """Return a whole answer."""
    return json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": content}}]}).encode()


async def live(app: App, meanwhile: Callable[[Message], Awaitable[None]]) -> None:
    """Run the lifespan of *app*; *meanwhile* hears of each message, before the shutdown comes."""
    script: list[Message] = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def receive() -> Message:
        return script.pop(0)

    await app({**LIFESPAN}, receive, meanwhile)
