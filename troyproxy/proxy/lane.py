"""How the events of a stream leave without messages, once its head is out: through the edits of the layers around it,
from the inside out, and into the server's own hands.

A message for each event, and an awaitable for each layer that it passes, cost more than what the layers do. But only
what knows itself to be nothing but an edit may be left out: with anything else in between there is no lane.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from troyproxy.proxy.answers import Peer, Send
from troyproxy.wire.sse import Frame

EditFrames = Callable[[list[Frame], bool], list[Frame]]
"""Takes the next whole frames and whether they are the last; returns what goes out instead.

Where nothing is changed it returns the very list, and what was to be sent is sent as it is."""


class Lane(msgspec.Struct, frozen=True):
    """*put* sends what is left of frames that go through *edits*, one after the other."""

    edits: tuple[EditFrames, ...]
    put: Callable[[bytes], None]


class Laned:
    """A `Send` of a layer that may know a lane."""

    __slots__ = ()

    def lane(self, peer: Peer) -> Lane | None:
        """Return how events go on from here; None where only messages will do. To be asked when the head is out."""
        raise NotImplementedError


def lane_of(send: Send, peer: Peer) -> Lane | None:
    """Return the lane behind *send*, where it ends at *peer*."""
    if isinstance(send, Laned):
        return send.lane(peer)
    return Lane((), peer.put) if peer.owns(send) else None
