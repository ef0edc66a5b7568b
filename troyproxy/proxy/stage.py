"""How a layer hands a call to the next one: straight, where that is one of ours, and else as ASGI wants it.

The layers of a gateway stand one in the other, and each needs the `Call`. Looking it up in the scope again, and a
coroutine for each of them that is resumed with every event of a stream, would cost more than what they do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from troyproxy.proxy.answers import Message, Receive, Send
from troyproxy.proxy.call import Call, Scope

ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Serve = Callable[[Call, Scope, Receive, Send], Awaitable[None]]


class Stage:
    """What can be handed a call. The scope carries it, too."""

    def serve(self, call: Call, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve *call*; what is returned is to be awaited at once."""
        raise NotImplementedError


def straight(app: ASGIApp) -> Serve:
    """Return how a call is handed to *app*."""
    if isinstance(app, Stage):
        return app.serve

    def serve(call: Call, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        del call
        return app(scope, receive, send)

    return serve


def told(call: Call, send: Send) -> Send:
    """Return a `Send` for answers that are begun without asking `Call.head`."""

    def send_told(message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            message = {**message, "headers": call.head(message["status"], tuple(message.get("headers", ())))}
        return send(message)

    return send_told
