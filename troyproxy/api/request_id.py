"""``x-troy-request-id`` is on every answer, whoever gave it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from os import urandom
from struct import unpack
from typing import Final

from troyproxy.proxy.answers import Message, Receive, Send
from troyproxy.proxy.call import Scope
from troyproxy.proxy.report import REQUEST_ID

DRAWN: Final = 200
"""Requests for which chance is drawn at once."""
ID_DIGITS: Final = 13
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]


def new_request_id() -> str:
    """Return a fresh id."""
    return f"req_{urandom(12).hex()}"


class Noise:
    """Chance, drawn from the system for many requests at once: each time it is asked, other threads get their turn."""

    def __init__(self) -> None:
        self._drawn: list[tuple[str, int]] = []
        self._moment, self._begin = -1, ""

    def take(self, at: float) -> tuple[str, int]:
        """Return the id of a request that arrived at *at* (unix seconds), and its seed: 64 bits that nobody else gets.

        Such ids sort by time. What is stored under them goes to the end of the database's index, not all over it.
        """
        if not self._drawn:
            self._draw()
        moment = int(at * 1000)
        if moment != self._moment:
            self._moment, self._begin = moment, f"req_{moment:011x}"
        digits, seed = self._drawn.pop()
        return self._begin + digits, seed

    def _draw(self) -> None:
        text, seeds = urandom(DRAWN * ID_DIGITS).hex(), unpack(f"<{DRAWN}Q", urandom(DRAWN * 8))
        digits = [text[at : at + ID_DIGITS] for at in range(0, DRAWN * ID_DIGITS, ID_DIGITS)]
        self._drawn.extend(zip(digits, seeds, strict=True))


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
