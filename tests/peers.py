"""A `Peer` that a test holds: what our own server puts into the scope, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.asgi import Scope
from troyproxy.proxy.answers import PEER


class FakePeer:
    """A client that has sent *body* by now (None: not all of it), reads unless it is `paused`, and leaves when told."""

    def __init__(self, body: bytes | None = None) -> None:
        self._body, self._gone = body, False
        self.watcher: Callable[[], None] | None = None
        self.paused = False

    def take_body(self) -> bytes | None:
        body, self._body = self._body, None
        return body

    def watch(self, callback: Callable[[], None], /) -> None:
        self.watcher = callback
        if self._gone:
            asyncio.get_running_loop().call_soon(self.leave)

    def unwatch(self) -> None:
        self.watcher = None

    def leave(self) -> None:
        """Hang up."""
        self._gone, watcher, self.watcher = True, self.watcher, None
        if watcher is not None:
            watcher()

    def at(self, scope: Scope) -> Scope:
        """Return *scope* as our own server makes it for this client."""
        return {**scope, "extensions": {PEER: self}}
