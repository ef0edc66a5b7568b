"""AuthGuard: who is calling. Refuses before anything of the body is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from troyproxy.errors import ConfigError, TroyError
from troyproxy.middleware.layer import ASGIApp, is_chat, refuse
from troyproxy.proxy.answers import Receive, Send, send_error
from troyproxy.proxy.authenticator import Authenticate, FixedKeys
from troyproxy.proxy.call import Scope, call_of

NO_KEYS: Final[Mapping[str, str]] = {}


class AuthGuard:
    """Alone: *keys* maps names to secrets of 16 to 512 bytes. Inside the gateway *authenticate* looks keys up.

    Raises ConfigError when there is neither: a guard that lets nobody in, or everybody, is a mistake.
    """

    def __init__(
        self, app: ASGIApp, keys: Mapping[str, str] = NO_KEYS, *, authenticate: Authenticate | None = None
    ) -> None:
        if authenticate is None and not keys:
            raise ConfigError("AuthGuard needs keys: {name: secret}")
        self.app = app
        self._authenticate = authenticate or FixedKeys(keys).authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = call_of(scope)
        if call is None and not is_chat(scope):
            await self.app(scope, receive, send)
            return
        try:
            key = await self._authenticate(scope)
        except TroyError as error:
            await (refuse(call, send, error) if call is not None else send_error(send, error))
            return
        if call is not None:
            call.key = key
        await self.app(scope, receive, send)
