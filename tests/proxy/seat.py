"""A client of our own server, as the walk knows it."""

from __future__ import annotations

import asyncio
from types import FunctionType, MethodType

from tests.peers import FakePeer
from troyproxy.proxy.answers import Send


class Seat(FakePeer):
    """A peer that can also leave later. *straight*: a plain function is its own `send`, if somebody asks."""

    def __init__(self, *, straight: bool = False) -> None:
        super().__init__()
        self._straight = straight
        self._send: Send
        self.parts: list[bytes] = []
        """What was `put`."""

    def owns(self, send: Send, /) -> bool:
        self._send = send
        return self._straight and isinstance(send, FunctionType | MethodType)  # not what some layer put around it

    def put(self, part: bytes, /) -> None:
        self.parts.append(part)
        sending = self._send({"type": "http.response.body", "body": part, "more_body": True}).__await__()
        assert next(sending, None) is None  # it does not wait

    def leave_in(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self.leave)
