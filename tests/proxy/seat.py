"""A client of our own server, as the walk knows it."""

from __future__ import annotations

import asyncio

from tests.peers import FakePeer


class Seat(FakePeer):
    """A peer that can also leave later."""

    def leave_in(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self.leave)
