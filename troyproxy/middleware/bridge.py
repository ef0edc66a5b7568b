"""Bridge: reads the body once. Another wire protocol outside, OpenAI chat inside; native chat is the identity.

How a body is read is picked by route (`READINGS`). A later protocol is one codec that is picked there; the guards
inside know OpenAI chat only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Final

from troyproxy.errors import TroyError
from troyproxy.middleware.layer import MAX_BODY, refuse
from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import PASS_THROUGH, Call, Scope, call_of
from troyproxy.proxy.intake import PATIENCE, ClientLeft, Patience, body_at_hand, read_body
from troyproxy.proxy.reading import NATIVE, OPAQUE, Reading
from troyproxy.proxy.stage import ASGIApp, Stage, straight

READINGS: Final[Mapping[str, Reading]] = dict.fromkeys(PASS_THROUGH, OPAQUE)
"""Route → how its bodies are read; all others are native."""


class Bridge(Stage):
    """Fills the call's body and payload. Behind it, `receive` gives nothing but the client's disconnect."""

    def __init__(self, app: ASGIApp, *, max_body: int = MAX_BODY, patience: Patience = PATIENCE) -> None:
        self.app, self._inner = app, straight(app)
        self._max_body, self._patience = max_body, patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = call_of(scope)
        await (self.app(scope, receive, send) if call is None else self.serve(call, scope, receive, send))

    def serve(self, call: Call, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Hand *call* on with its body, which is mostly here before anybody asks for it."""
        reading = READINGS.get(call.route, NATIVE)
        try:
            reading.expect(call)
            body = body_at_hand(call.peer, call.fields, limit=self._max_body)
            if body is None:
                return self._read(reading, call, scope, receive, send)
            call.body = body
            reading.take(call)
        except TroyError as error:
            return refuse(call, send, error)
        return self._inner(call, scope, receive, send)

    async def _read(self, reading: Reading, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            call.body = await read_body(
                receive, call.headers, limit=self._max_body, patience=self._patience, peer=call.peer
            )
            reading.take(call)
        except TroyError as error:
            await refuse(call, send, error)
        except ClientLeft:
            call.client_left = True
        else:
            await self._inner(call, scope, receive, send)
