"""The proxy endpoint: the innermost app of the onion. Plans were made outside; it walks and relays."""

from __future__ import annotations

from collections.abc import Awaitable

from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import Call, Scope, call_of
from troyproxy.proxy.stage import Stage
from troyproxy.proxy.walk import Walk


class ProxyEndpoint(Stage):
    """Serves the call in the scope."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = call_of(scope)
        if call is None:
            raise RuntimeError("the endpoint stands behind the edge, which makes the call")
        await self._walk.run(call, receive, send)

    def serve(self, call: Call, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve *call*."""
        del scope
        return self._walk.run(call, receive, send)
