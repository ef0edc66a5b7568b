"""Answers that the gateway itself gives: JSON bodies and the one error envelope."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, Protocol

from troyproxy.errors import TroyError
from troyproxy.wire import json

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]

PEER: Final = "troyproxy.peer"
"""The key in the scope's ``extensions`` under which our own server puts the `Peer` of a request."""


class TooMuch(Exception):
    """A body has more bytes than it may have."""


class Peer(Protocol):
    """Who waits for the answer, where our own server is in front: told without a task that listens at `receive`."""

    @property
    def paused(self) -> bool:
        """Whether the next `send` would wait for a client that does not read."""
        ...

    @property
    def unsent(self) -> int:
        """Bytes that were sent to the client and that its side has not taken yet."""
        ...

    def take_body(self) -> bytes | None:
        """Return the whole body of the request, once; None when it is not all here, and is to be gathered."""
        ...

    async def gather(self, limit: int, *, stall_s: float, total_s: float) -> bytes | None:
        """Return the whole body of the request, once; None when the client leaves before its end.

        Its pieces wake nobody. Raises TooMuch as soon as more than *limit* bytes are here, and TimeoutError when no
        piece came for *stall_s* seconds, or not the end within *total_s*.
        """
        ...

    def watch(self, callback: Callable[[], None], /) -> None:
        """Call *callback* once, should the client leave before the answer is complete; the latest one counts.

        It is called from the event loop, never from here, also when the client has left by now.
        """
        ...

    def unwatch(self) -> None:
        """Call nobody."""
        ...

    def drop(self) -> None:
        """End the connection unless the answer is complete: it broke off, or its client does not read it."""
        ...

    def owns(self, send: Send, /) -> bool:
        """Whether *send* is what our server gave to the app, and nothing around it."""
        ...

    def put(self, part: bytes, /) -> None:
        """Send a *part* of an answer that has begun and is not complete, as `send` does while not `paused`."""
        ...


async def send_json(send: Send, status: int, value: object, headers: Mapping[str, str] | None = None) -> None:
    """Send *value* as a whole JSON answer that no cache keeps."""
    await send_bytes(send, status, json.encode(value), {"content-type": "application/json", **(headers or {})})


async def send_bytes(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    """Send a whole answer."""
    given = {"content-length": str(len(body)), "cache-control": "no-store", **headers}
    raw = [(name.encode("ascii"), value.encode("latin-1")) for name, value in given.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


async def send_error(
    send: Send, error: TroyError, headers: Mapping[str, str] | None = None, *, quiet: bool = False
) -> None:
    """Send *error* in the envelope, with the headers it carries; *quiet*: it names no provider."""
    await send_json(send, error.http_status, error.envelope(quiet=quiet), {**error.headers, **(headers or {})})
