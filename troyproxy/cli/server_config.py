"""What uvicorn is told of our server, and what all its connections share. Nothing happens here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property

import uvicorn

from troyproxy.cli.exchange import Serve
from troyproxy.cli.forwarded import Forwarded
from troyproxy.cli.line import Lowered, Names
from troyproxy.upstream.outbox import Outbox


class ServerConfig(uvicorn.Config):
    """What uvicorn is told of a server whose connections are those of `protocol`."""

    stopping: Callable[[], bool] = staticmethod(lambda: False)
    """Whether the server is about to stop: every answer then is the last of its connection."""
    requests: Serve | None = None
    """What serves requests, where the app as a whole only tells them from a lifespan."""

    @cached_property
    def outbox(self) -> Outbox:
        """The small writes of one turn of the event loop, to all clients."""
        return Outbox(asyncio.get_running_loop())

    @cached_property
    def forwarded(self) -> Forwarded:
        """What reads who a request comes from."""
        return Forwarded(self.loaded_app)

    @cached_property
    def names(self) -> Names:
        """The names of headers that answers had so far."""
        return Names()

    @cached_property
    def lowered(self) -> Lowered:
        """The names of headers that requests had so far."""
        return Lowered()
