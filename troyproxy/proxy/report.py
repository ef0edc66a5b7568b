"""The ``x-troy-*`` headers: the compact story of a request, for its client.

ASCII, percent-encoded where needed, together under 1 KiB, no URL, no upstream message, no secret. With
``TROY_EXPOSE=id`` a client sees the request id, the attempts and retry-after only.
"""

from __future__ import annotations

from typing import Final

from troyproxy.ports import Headers
from troyproxy.proxy.call import Call
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.wire.headers import ascii_value, to_client

LONG: Final = 260
"""Bytes of the longest story header; the others are short by nature."""
SHORT: Final = 96
REQUEST_ID: Final = b"x-troy-request-id"
STREAM_HEADERS: Final[Headers] = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))


def commit_headers(call: Call, policy: WalkPolicy, upstream: Headers) -> Headers:
    """Return the head of an answer that an upstream gives."""
    own = STREAM_HEADERS if call.stream else ((b"cache-control", b"no-store"),)
    return (*to_client(upstream), *own, *story(call, policy))


def early_headers(call: Call) -> Headers:
    """Return the head of a stream that is opened before anybody answered."""
    return ((b"content-type", b"text/event-stream; charset=utf-8"), *STREAM_HEADERS, (REQUEST_ID, _id(call)))


def story(call: Call, policy: WalkPolicy) -> Headers:
    """Return the request's story so far."""
    ledger = call.ledger
    always = ((REQUEST_ID, _id(call)), (b"x-troy-attempts", str(len(ledger.attempts)).encode()))
    if policy.expose == "id":
        return always
    resolution = call.resolution
    combo = resolution.combo if resolution is not None else None
    served = f"{ledger.provider}/{ledger.model}" if ledger.served else ""
    overhead = f"{ledger.overhead_s * 1000:.1f}" if ledger.overhead_s is not None else ""
    told = (
        (b"x-troy-model", served, SHORT),
        (b"x-troy-account", ledger.account or "", SHORT),
        (b"x-troy-combo", combo.name if combo is not None else "", SHORT),
        (b"x-troy-strategy", combo.strategy if combo is not None else "", SHORT),
        (b"x-troy-trail", ledger.trail, LONG),
        (b"x-troy-skipped", ledger.skips, LONG),
        (b"x-troy-adapted", ",".join(ledger.adapted), SHORT),
        (b"x-troy-leak", ledger.leak or "", SHORT),
        (b"x-troy-overhead-ms", overhead, SHORT),
    )
    return (*always, *((name, ascii_value(text, limit=limit)) for name, text, limit in told if text))


def _id(call: Call) -> bytes:
    return call.request_id.encode("ascii")
