"""Bridge: reads the body once. Another wire protocol outside, OpenAI chat inside; native chat is the identity.

How a body is read is picked by route (`READINGS`). A later protocol is one codec that is picked there; the guards
inside know OpenAI chat only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from troyproxy.errors import TroyError
from troyproxy.middleware.layer import MAX_BODY, ASGIApp, refuse
from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import PASS_THROUGH, Scope, call_of
from troyproxy.proxy.intake import PATIENCE, ClientLeft, Patience, read_body
from troyproxy.proxy.reading import NATIVE, OPAQUE, Reading

READINGS: Final[Mapping[str, Reading]] = dict.fromkeys(PASS_THROUGH, OPAQUE)
"""Route → how its bodies are read; all others are native."""


class Bridge:
    """Fills the call's body and payload. Behind it, `receive` gives nothing but the client's disconnect."""

    def __init__(self, app: ASGIApp, *, max_body: int = MAX_BODY, patience: Patience = PATIENCE) -> None:
        self.app = app
        self._max_body, self._patience = max_body, patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = call_of(scope)
        if call is None:
            await self.app(scope, receive, send)
            return
        reading = READINGS.get(call.route, NATIVE)
        try:
            reading.expect(call)
            call.body = await read_body(receive, call.headers, limit=self._max_body, patience=self._patience)
            reading.take(call)
        except TroyError as error:
            await refuse(call, send, error)
        except ClientLeft:
            call.client_left = True
        else:
            await self.app(scope, receive, send)
