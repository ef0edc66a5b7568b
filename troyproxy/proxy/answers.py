"""Answers that the gateway itself gives: JSON bodies and the one error envelope."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from troyproxy.errors import TroyError
from troyproxy.wire import json

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]


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
