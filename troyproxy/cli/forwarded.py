"""Who a request comes from, as a proxy in front of us tells: read as uvicorn reads it, before the request is served."""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, cast

from uvicorn._types import ASGI3Application
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from troyproxy.proxy.call import Scope

PREFIX: Final = b"x-forwarded-"
"""How the names of the headers begin that are read here."""


class Forwarded:
    """What uvicorn's layer in front of *app* would make of a scope; without it, nothing. `app` is behind the layer.

    The layer itself would stay in the way of the answer, and of requests that nobody has forwarded.
    """

    def __init__(self, app: ASGI3Application) -> None:
        self.app, self._layer = app, None
        if isinstance(app, ProxyHeadersMiddleware):
            self.app, self._layer = app.app, ProxyHeadersMiddleware(_nothing)
            self._layer.trusted_hosts = app.trusted_hosts

    def read(self, scope: Scope) -> None:
        """Put what a trusted proxy tells into *scope*."""
        if self._layer is not None:
            none = cast("Any", None)  # the layer only hands them on, and to nobody
            reading: Coroutine[Any, Any, None] = self._layer(cast("Any", scope), none, none)
            with suppress(StopIteration):
                reading.send(None)


async def _nothing(*_: object) -> None:
    pass
