"""Reads a request body once: bounded, decompressed, decoded. Every way of being wrong has its own error.

Compression bombs stop at the limit: a decoder yields bounded pieces, and they are counted as they come. A client that
does not send what it began to send is not waited for without end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from troyproxy.errors import BodyTooLarge, InvalidJSON, InvalidRequest, UnsupportedEncoding, UnsupportedMediaType
from troyproxy.ports import Headers
from troyproxy.proxy.answers import Message, Peer, Receive, TooMuch
from troyproxy.wire import json
from troyproxy.wire.coding import CODECS, ERRORS
from troyproxy.wire.places import LARGE, decode_large

CODINGS: Final = tuple(name.decode() for name in CODECS)
"""Content codings that requests may use. Stacked codings are refused: nobody sends them, bombs do."""
PLAIN: Final = frozenset({"", "identity"})
JSON: Final = b"application/json"
SMALL: Final = 1024
"""Bytes of a compressed body that is not worth a thread: at best it becomes a megabyte."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a body is waited for."""

    stall_s: float = 60.0
    """Until its next piece."""
    total_s: float = 600.0
    """Until its end."""


PATIENCE: Final = Patience()


class ClientLeft(Exception):
    """The client hung up before its request was read."""


async def read_body(
    receive: Receive, headers: Headers, *, limit: int, patience: Patience = PATIENCE, peer: Peer | None = None
) -> bytes:
    """Return the request body, decompressed. Raises BodyTooLarge, UnsupportedEncoding, InvalidRequest, ClientLeft.

    *peer*, where there is one, has it instead of *receive*.
    """
    refuse_declared(headers, limit=limit)
    coding = content_coding(headers)
    body = await (_collect(receive, limit, patience) if peer is None else _gather(peer, limit, patience))
    if not coding:
        return body
    if len(body) <= SMALL:
        return inflate(body, coding, limit=limit)
    return await asyncio.to_thread(inflate, body, coding, limit=limit)  # others' streams go on meanwhile


def body_at_hand(peer: Peer | None, fields: Mapping[bytes, bytes], *, limit: int) -> bytes | None:
    """Return the request body if it is all here and as it is to be read; None when `read_body` is to be asked.

    *fields* are the headers. Raises BodyTooLarge.
    """
    if peer is None or b"content-encoding" in fields:
        return None
    body = peer.take_body()
    if body is not None and len(body) > limit:
        raise _too_large(limit)
    return body


def refuse_declared(headers: Headers, *, limit: int) -> None:
    """Raise BodyTooLarge when the declared length alone is too much, before a byte is read."""
    declared = next((value for name, value in headers if name == b"content-length"), b"0")
    if declared.isdigit() and int(declared[:20]) > limit:
        raise _too_large(limit)


def content_coding(headers: Headers) -> str:
    """Return the request's content coding ("" for none). Raises UnsupportedEncoding."""
    given = b",".join(value for name, value in headers if name == b"content-encoding").decode("latin-1")
    coding = ",".join(part for part in (each.strip().lower() for each in given.split(",")) if part not in PLAIN)
    if coding and coding not in CODINGS:
        raise UnsupportedEncoding(f"content-encoding {coding[:40]!r} is not read; use one of {', '.join(CODINGS)}")
    return coding


async def _gather(peer: Peer, limit: int, patience: Patience) -> bytes:
    try:
        body = await peer.gather(limit, stall_s=patience.stall_s, total_s=patience.total_s)
    except TooMuch as exc:
        raise _too_large(limit) from exc
    except TimeoutError as exc:
        raise _late() from exc
    if body is None:
        raise ClientLeft
    return body


async def _collect(receive: Receive, limit: int, patience: Patience) -> bytes:
    now = asyncio.get_running_loop().time
    end = now() + patience.total_s
    parts: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout_at(min(end, now() + patience.stall_s)) as clock:
            while more:
                message = await receive()
                part = _part(message)
                size += len(part)
                if size > limit:
                    raise _too_large(limit)
                parts.append(part)
                more = message.get("more_body", False)
                if more:
                    clock.reschedule(min(end, now() + patience.stall_s))
    except TimeoutError as exc:
        raise _late() from exc
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _part(message: Message) -> bytes:
    if message["type"] == "http.disconnect":
        raise ClientLeft
    return bytes(message.get("body", b""))


def inflate(body: bytes, coding: str, *, limit: int) -> bytes:
    """Return *body* decompressed. Raises BodyTooLarge past *limit* bytes and InvalidRequest for a broken stream."""
    codec = CODECS[coding.encode()]()
    parts: list[bytes] = []
    size = 0
    try:
        for part in codec.feed(body):
            size += len(part)
            if size > limit:
                raise _too_large(limit)
            parts.append(part)
    except ERRORS as exc:
        raise InvalidRequest(f"the body is not valid {coding}") from exc
    if body and not codec.finished:
        raise InvalidRequest(f"the {coding} body ends too early")
    return b"".join(parts)


def _late() -> InvalidRequest:
    late = InvalidRequest("the request body did not arrive in time")
    late.headers["connection"] = "close"  # what is still to come of it must not be taken for the next request
    return late


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"the request body is larger than {limit // (1 << 20)} MiB")


def decode_object(body: bytes) -> dict[str, object]:
    """Return the JSON object in *body*. Raises InvalidJSON, or InvalidRequest when it is JSON but no object."""
    return decode_single(body)[0]


def decode_single(body: bytes) -> tuple[dict[str, object], bool]:
    """Do the same; say, too, whether *body* is a large object that is known to have no member twice."""
    try:
        value, single = decode_large(body) if len(body) >= LARGE else (json.decode(body), False)
    except json.MalformedJSON as exc:
        if not body or body.isspace():
            raise InvalidJSON("the request body is empty; a JSON object is expected") from None
        raise InvalidJSON(f"the request body is not valid JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise InvalidRequest(f"the request body must be a JSON object, not {_kind(value)}")
    return value, single


def require_json(headers: Headers) -> None:
    """Raise UnsupportedMediaType when the body declares to be something else; undeclared bodies are tried."""
    declared = next((value for name, value in headers if name == b"content-type"), JSON)
    if declared == JSON:
        return
    kind = declared.decode("latin-1").lower().partition(";")[0].strip()
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise UnsupportedMediaType(f"content-type {kind[:80]!r} is not read here; send application/json")


def _kind(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
