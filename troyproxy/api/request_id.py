"""``x-troy-request-id`` is on every answer, whoever gave it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from os import urandom
from typing import Final

from troyproxy.proxy.answers import Message, Receive, Send
from troyproxy.proxy.call import Scope
from troyproxy.proxy.report import REQUEST_ID

DRAWN: Final = 3000
"""Bytes that are drawn at once."""
SEED_DIGITS: Final = 16
ID_DIGITS: Final = 13
EACH: Final = SEED_DIGITS + ID_DIGITS
"""Hexadecimal digits that a request takes."""
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]


def new_request_id() -> str:
    """Return a fresh id."""
    return f"req_{urandom(12).hex()}"


class Noise:
    """Chance, drawn from the system for many requests at once: each time it is asked, other threads get their turn."""

    def __init__(self) -> None:
        self._drawn, self._at = "", 0

    def take(self, at: float) -> tuple[str, int]:
        """Return the id of a request that arrived at *at* (unix seconds), and its seed: 64 bits that nobody else gets.

        Such ids sort by time. What is stored under them goes to the end of the database's index, not all over it.
        """
        begin, end = self._at, self._at + EACH
        if end > len(self._drawn):
            self._drawn, begin, end = urandom(DRAWN).hex(), 0, EACH
        self._at = end
        middle = begin + SEED_DIGITS
        return f"req_{int(at * 1000):011x}{self._drawn[middle:end]}", int(self._drawn[begin:middle], 16)


def naming(send: Send, request_id: str) -> Send:
    """Return a `Send` that adds the id where it is missing."""

    async def send_named(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message.get("headers", [])
            if not any(name == REQUEST_ID for name, _ in headers):
                message = {**message, "headers": [*headers, (REQUEST_ID, request_id.encode("ascii"))]}
        await send(message)

    return send_named


class Named:
    """Around the routes that no `Edge` stands in front of."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, naming(send, new_request_id()))
