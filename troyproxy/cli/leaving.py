"""Every answer of a server that stops tells its client to take another connection next time."""

from __future__ import annotations

from collections.abc import Callable

from troyproxy.api.gateway import ASGIApp
from troyproxy.proxy.answers import Message, Receive, Send
from troyproxy.proxy.call import Scope


class Leaving:
    """Adds ``connection: close`` to the answers of *app* while *stopping* says so: a proxy in front moves on."""

    def __init__(self, app: ASGIApp, stopping: Callable[[], bool]) -> None:
        self.app, self._stopping = app, stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_last(message: Message) -> None:
            if message["type"] == "http.response.start" and self._stopping():
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        await self.app(scope, receive, send_last if scope["type"] == "http" else send)
