"""AuthGuard: who is calling. Refuses before anything of the body is read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from troyproxy.catalog.keys import Key
from troyproxy.errors import ConfigError, TroyError
from troyproxy.middleware.layer import is_chat, refuse
from troyproxy.proxy.answers import Receive, Send, send_error
from troyproxy.proxy.authenticator import Authenticate, FixedKeys
from troyproxy.proxy.call import Call, Scope, call_of
from troyproxy.proxy.stage import ASGIApp, Stage, straight

NO_KEYS: Final[Mapping[str, str]] = {}


class AuthGuard(Stage):
    """Alone: *keys* maps names to secrets of 16 to 512 bytes. Inside the gateway *authenticate* looks keys up, but for
    those that *known* knows, at once.

    Raises ConfigError when there is neither: a guard that lets nobody in, or everybody, is a mistake.
    """

    def __init__(
        self,
        app: ASGIApp,
        keys: Mapping[str, str] = NO_KEYS,
        *,
        authenticate: Authenticate | None = None,
        known: Callable[[Call], Key | None] | None = None,
    ) -> None:
        if authenticate is None and not keys:
            raise ConfigError("AuthGuard needs keys: {name: secret}")
        self.app, self._inner = app, straight(app)
        self._known = known
        self._authenticate = authenticate or FixedKeys(keys).authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = call_of(scope)
        if call is not None:
            await self.serve(call, scope, receive, send)
            return
        try:
            if is_chat(scope):
                await self._authenticate(scope)
        except TroyError as error:
            await send_error(send, error)
        else:
            await self.app(scope, receive, send)

    def serve(self, call: Call, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Hand *call* on with its key; of most of them the key is known."""
        key = self._known(call) if self._known is not None else None
        if key is None:
            return self._ask(call, scope, receive, send)
        call.key = key
        return self._inner(call, scope, receive, send)

    async def _ask(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            call.key = await self._authenticate(scope)
        except TroyError as error:
            await refuse(call, send, error)
        else:
            await self._inner(call, scope, receive, send)
