"""``x-troy-request-id`` is on every answer, whoever gave it."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

from troyproxy.proxy.answers import Message, Receive, Send
from troyproxy.proxy.call import Scope
from troyproxy.proxy.report import REQUEST_ID

ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]


def new_request_id() -> str:
    """Return a fresh id."""
    return f"req_{secrets.token_hex(12)}"


def naming(send: Send, request_id: str) -> Send:
    """Return a `Send` that adds the id where it is missing."""

    async def send_named(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message.get("headers", [])
            if not any(name == REQUEST_ID for name, _ in headers):
                message = {**message, "headers": [*headers, (REQUEST_ID, request_id.encode("ascii"))]}
        await send(message)

    return send_named


class Named:
    """Around the routes that no `Edge` stands in front of."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, naming(send, new_request_id()))
