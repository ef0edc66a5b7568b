"""Reads a request body once: bounded, decompressed, decoded. Every way of being wrong has its own error.

Compression bombs stop at the limit: a decoder yields bounded pieces, and they are counted as they come.
"""

from __future__ import annotations

from typing import Final

from troyproxy.errors import BodyTooLarge, InvalidJSON, InvalidRequest, UnsupportedEncoding, UnsupportedMediaType
from troyproxy.ports import Headers
from troyproxy.proxy.answers import Receive
from troyproxy.wire import json
from troyproxy.wire.coding import CODECS, ERRORS

CODINGS: Final = tuple(name.decode() for name in CODECS)
"""Content codings that requests may use. Stacked codings are refused: nobody sends them, bombs do."""
PLAIN: Final = frozenset({"", "identity"})


class ClientLeft(Exception):
    """The client hung up before its request was read."""


async def read_body(receive: Receive, headers: Headers, *, limit: int) -> bytes:
    """Return the request body, decompressed. Raises BodyTooLarge, UnsupportedEncoding, InvalidRequest, ClientLeft."""
    refuse_declared(headers, limit=limit)
    coding = content_coding(headers)
    body = await _collect(receive, limit)
    return inflate(body, coding, limit=limit) if coding else body


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


async def _collect(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


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


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"the request body is larger than {limit // (1 << 20)} MiB")


def decode_object(body: bytes) -> dict[str, object]:
    """Return the JSON object in *body*. Raises InvalidJSON, or InvalidRequest when it is JSON but no object."""
    if not body.strip():
        raise InvalidJSON("the request body is empty; a JSON object is expected")
    try:
        value = json.decode(body)
    except json.MalformedJSON as exc:
        raise InvalidJSON(f"the request body is not valid JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise InvalidRequest(f"the request body must be a JSON object, not {_kind(value)}")
    return value


def require_json(headers: Headers) -> None:
    """Raise UnsupportedMediaType when the body declares to be something else; undeclared bodies are tried."""
    declared = next((v.decode("latin-1").lower() for n, v in headers if n == b"content-type"), "")
    kind = declared.partition(";")[0].strip()
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise UnsupportedMediaType(f"content-type {kind[:80]!r} is not read here; send application/json")


def _kind(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
