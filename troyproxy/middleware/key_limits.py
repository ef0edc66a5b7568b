"""KeyLimits: admits what the key's limits and budgets allow, and afterwards corrects what was charged.

It acts inside the gateway only, behind Preflight: what that refuses is not charged, and it knows the estimate. A key
without limits passes as if the layer were not there.
"""

from __future__ import annotations

from collections.abc import Awaitable

from troyproxy.catalog.keys import Key
from troyproxy.middleware.layer import refuse
from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import Call, Scope, call_of
from troyproxy.proxy.limits import LimitKeeper
from troyproxy.proxy.rows import cost_of
from troyproxy.proxy.stage import ASGIApp, Stage, straight
from troyproxy.proxy.tokens_used import estimated, tokens_used


class KeyLimits(Stage):
    """*keeper* knows every key."""

    def __init__(self, app: ASGIApp, *, keeper: LimitKeeper) -> None:
        self.app, self._inner = app, straight(app)
        self._keeper = keeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = call_of(scope)
        await (self.app(scope, receive, send) if call is None else self.serve(call, scope, receive, send))

    def serve(self, call: Call, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Hand *call* on, if its key may still do this."""
        if call.key is None or not call.key.limits:
            return self._inner(call, scope, receive, send)
        return self._admit(call.key, call, scope, receive, send)

    async def _admit(self, key: Key, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        ticket = await self._keeper.admit(key, estimated(call))
        call.standing = ticket.standing
        if ticket.refusal is not None:
            await refuse(call, send, ticket.refusal)
            return
        try:
            await self._inner(call, scope, receive, send)
        finally:
            self._keeper.settle(ticket, used=tokens_used(call), usd=cost_of(call) or 0.0, at=call.at)
