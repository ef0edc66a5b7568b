"""KeyLimits: admits what the key's limits and budgets allow, and afterwards corrects what was charged.

It acts inside the gateway only, behind Preflight: what that refuses is not charged, and it knows the estimate. A key
without limits passes as if the layer were not there.
"""

from __future__ import annotations

from troyproxy.middleware.layer import ASGIApp, refuse
from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import Scope, call_of
from troyproxy.proxy.limits import LimitKeeper
from troyproxy.proxy.rows import cost_of
from troyproxy.proxy.tokens_used import estimated, tokens_used


class KeyLimits:
    """*keeper* knows every key."""

    def __init__(self, app: ASGIApp, *, keeper: LimitKeeper) -> None:
        self.app = app
        self._keeper = keeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = call_of(scope)
        if call is None or call.key is None or not call.key.limits:
            await self.app(scope, receive, send)
            return
        ticket = await self._keeper.admit(call.key, estimated(call))
        call.standing = ticket.standing
        if ticket.refusal is not None:
            await refuse(call, send, ticket.refusal)
            return
        try:
            await self.app(scope, receive, send)
        finally:
            self._keeper.settle(ticket, used=tokens_used(call), usd=cost_of(call) or 0.0, at=call.at)
