"""A `Peer` that a test holds: what our own server puts into the scope, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.asgi import Scope
from troyproxy.proxy.answers import PEER, Send


class FakePeer:
    """A client that has sent *body* by now (None: not all of it), reads unless it is `paused`, and leaves when told.

    *gathered* is what comes of the wait for its body: None when it leaves.
    """

    def __init__(self, body: bytes | None = None, gathered: bytes | Exception | None = None) -> None:
        self._body, self._gone = body, False
        self._gathered = body if gathered is None else gathered
        self.watcher: Callable[[], None] | None = None
        self.paused = self.dropped = False
        self.unsent = 0

    def take_body(self) -> bytes | None:
        body, self._body = self._body, None
        return body

    async def gather(self, limit: int, *, stall_s: float, total_s: float) -> bytes | None:
        del limit, stall_s, total_s
        if isinstance(self._gathered, Exception):
            raise self._gathered
        return self._gathered

    def watch(self, callback: Callable[[], None], /) -> None:
        self.watcher = callback
        if self._gone:
            asyncio.get_running_loop().call_soon(self.leave)

    def unwatch(self) -> None:
        self.watcher = None

    def drop(self) -> None:
        self.dropped = True

    def owns(self, send: Send, /) -> bool:
        del send
        return False

    def put(self, part: bytes, /) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        """Hang up."""
        self._gone, watcher, self.watcher = True, self.watcher, None
        if watcher is not None:
            watcher()

    def at(self, scope: Scope) -> Scope:
        """Return *scope* as our own server makes it for this client."""
        return {**scope, "extensions": {PEER: self}}
