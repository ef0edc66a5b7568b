"""Somebody else's app with the gateway inside, as a process: `python -m tests.e2e.cases.hosts KIND CONFIG DATABASE`.

It prints its port. The host itself serves ``POST /echo`` and ``POST /wait`` (which ends when its client leaves), and
``GET /left``, which says how many clients have left ``/wait``.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

import uvicorn
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint  # noqa: TID251 -- a host's
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from troyproxy import TroyProxy

ADMIN: Final = "admin-token-of-the-embedded-gateway"


class Host:
    """The app that the gateway is wrapped around."""

    def __init__(self) -> None:
        self._left = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        if scope["path"] == "/wait":
            assert (await receive())["type"] == "http.disconnect"
            self._left += 1
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send(
            {"type": "http.response.body", "body": str(self._left).encode() if scope["path"] == "/left" else body}
        )


class Untouched(BaseHTTPMiddleware):
    """A third party's middleware that passes everything on."""

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        return await call_next(request)


class Reading(BaseHTTPMiddleware):
    """A third party's middleware that reads the body first."""

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        await request.body()
        return await call_next(request)


class Raising:
    """A server after ASGI 2.4 that tells of a client that has left by an OSError from `send`, and in no other way."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = {**scope, "asgi": {**scope["asgi"], "spec_version": "2.4"}}
        first = await receive()
        waiting = asyncio.create_task(_gone(receive))  # noqa: TID251 -- ends with the request

        async def receive_once() -> Message:
            if pending:
                return pending.pop()
            await asyncio.Event().wait()
            raise AssertionError

        async def send_or_raise(message: MutableMapping[str, Any]) -> None:
            if waiting.done():
                raise OSError("the client has left")
            await send(message)

        pending = [first]
        try:
            await self._app(scope, receive_once, send_or_raise)
        finally:
            waiting.cancel()


async def _gone(receive: Callable[[], Awaitable[Message]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


AROUND: Final[dict[str, Callable[[ASGIApp], ASGIApp]]] = {
    "plain": lambda app: app,
    "untouched": Untouched,
    "reading": Reading,
    "raising": Raising,
}


def main(kind: str, config: str, database: str) -> None:
    """Serve until killed."""
    settings = {"database_url": f"sqlite+aiosqlite:///{database}", "admin_token": ADMIN}
    inner = TroyProxy(Host(), config=config, settings=settings)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # whoever reads the port may connect at once
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(AROUND[kind](inner), log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
