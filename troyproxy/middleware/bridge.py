"""Bridge: reads the body once. Another wire protocol outside, OpenAI chat inside; native chat is the identity.

A later protocol is one codec that this layer picks by route; the guards inside know OpenAI chat only.
"""

from __future__ import annotations

from troyproxy.errors import TroyError
from troyproxy.middleware.layer import MAX_BODY, ASGIApp, refuse
from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import Scope, call_of
from troyproxy.proxy.intake import ClientLeft, decode_object, read_body, require_json


class Bridge:
    """Fills the call's body and payload. Behind it, `receive` gives nothing but the client's disconnect."""

    def __init__(self, app: ASGIApp, *, max_body: int = MAX_BODY) -> None:
        self.app = app
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = call_of(scope)
        if call is None:
            await self.app(scope, receive, send)
            return
        try:
            require_json(call.headers)
            call.body = await read_body(receive, call.headers, limit=self._max_body)
            call.payload = decode_object(call.body)
        except TroyError as error:
            await refuse(call, send, error)
        except ClientLeft:
            call.client_left = True
        else:
            await self.app(scope, receive, send)
