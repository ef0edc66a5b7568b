"""The ``x-troy-*`` headers: the compact story of a request, for its client.

ASCII, percent-encoded where needed, together under 1 KiB, no URL, no upstream message, no secret. With
``TROY_EXPOSE=id`` a client sees the request id, the attempts and retry-after only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from troyproxy.accounting.limits import Standing, spoken
from troyproxy.ports import Headers
from troyproxy.proxy.call import Call
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.wire.headers import ascii_value, to_client

LONG: Final = 200
"""Bytes of the longest story header; the others are short by nature."""
SHORT: Final = 72
ADAPTED: Final = 160
REQUEST_ID: Final = b"x-troy-request-id"
ATTEMPTS: Final = b"x-troy-attempts"
STREAM_HEADERS: Final[Headers] = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))
EVENT_STREAM: Final = (b"content-type", b"text/event-stream; charset=utf-8")
JSON: Final = (b"content-type", b"application/json")
RATES: Final = b"x-ratelimit-"
_HALF_ESCAPE: Final = re.compile(rb"%[0-9A-F]?\Z")


def commit_headers(call: Call, policy: WalkPolicy, upstream: Headers) -> Headers:
    """Return the head of an answer that an upstream gives.

    By now the body is known for what it is; a content type that says otherwise would lead the layers outside astray.
    """
    given = to_client(upstream)
    kind = next((value.lower() for name, value in given if name == b"content-type"), b"")
    wanted = EVENT_STREAM if call.stream else JSON
    if not (kind.startswith(b"text/event-stream") if call.stream else b"json" in kind):
        given = (wanted, *(pair for pair in given if pair[0] != b"content-type"))
    own = STREAM_HEADERS if call.stream else ((b"cache-control", b"no-store"),)
    return exposed((*given, *own, *story(call, policy)), policy)


def passed_headers(call: Call, policy: WalkPolicy, upstream: Headers) -> Headers:
    """Return the head of an answer that is passed through: whatever it says to be, it stays.

    A coding that the adapter could not undo is told; proxies on the way are asked not to hold it back.
    """
    coded = tuple((name, value) for name, value in upstream if name == b"content-encoding")
    events = any(n == b"content-type" and v.lower().startswith(b"text/event-stream") for n, v in upstream)
    caching = (b"cache-control", b"no-cache" if events else b"no-store")
    own = (*coded, caching, (b"x-accel-buffering", b"no"), *story(call, policy))
    return exposed((*to_client(upstream), *own), policy)


def early_headers(call: Call) -> Headers:
    """Return the head of a stream that is opened before anybody answered."""
    return (EVENT_STREAM, *STREAM_HEADERS, (REQUEST_ID, _id(call)))


def exposed(headers: Headers, policy: WalkPolicy) -> Headers:
    """Return what of *headers* a client may see."""
    if policy.expose != "id":
        return headers
    return tuple(pair for pair in headers if not pair[0].startswith(b"x-troy-") or pair[0] in {REQUEST_ID, ATTEMPTS})


def story(call: Call, policy: WalkPolicy, *, known: Collection[bytes] = ()) -> Headers:
    """Return the request's story so far, but for the headers that are *known* already."""
    parts = ALWAYS if policy.expose == "id" else PARTS
    told = ((name, tell(call)) for name, tell in parts.items() if name not in known)
    return tuple((name, value) for name, value in told if value)


def rate_headers(standings: Iterable[Standing]) -> Headers:
    """Return ``x-ratelimit-{limit,remaining,reset}-{requests,tokens}``, for the rates that are limited."""
    return tuple(pair for standing in standings for pair in _rate(standing))


def _rate(standing: Standing) -> Headers:
    name = standing.name.encode()
    told = ((b"limit", standing.limit), (b"remaining", standing.remaining), (b"reset", spoken(standing.reset_s)))
    return tuple((b"%b%b-%b" % (RATES, what, name), str(value).encode()) for what, value in told)


def _value(text: str, limit: int = SHORT) -> bytes:
    """Return *text* for a header; a cut never leaves half an escape."""
    if not text:
        return b""
    return _HALF_ESCAPE.sub(b"", ascii_value(text, limit=limit))


def _id(call: Call) -> bytes:
    return call.request_id.encode("ascii")


def _served(call: Call) -> bytes:
    ledger = call.ledger
    return _value(f"{ledger.provider}/{ledger.model}" if ledger.served else "")


def _overhead(call: Call) -> bytes:
    overhead_s = call.ledger.overhead_s
    return _value(f"{overhead_s * 1000:.1f}" if overhead_s is not None else "")


ALWAYS: Final[Mapping[bytes, Callable[[Call], bytes]]] = {
    REQUEST_ID: _id,
    ATTEMPTS: lambda call: str(len(call.ledger.attempts)).encode(),
}
PARTS: Final[Mapping[bytes, Callable[[Call], bytes]]] = {
    **ALWAYS,
    b"x-troy-model": _served,
    b"x-troy-account": lambda call: _value(call.ledger.account or ""),
    b"x-troy-combo": lambda call: _value(call.combo_name or ""),
    b"x-troy-strategy": lambda call: _value(";".join((call.strategy or "", *call.ledger.marks))),
    b"x-troy-trail": lambda call: call.ledger.trail_within(LONG).encode(),
    b"x-troy-skipped": lambda call: call.ledger.skips_within(LONG).encode(),
    b"x-troy-adapted": lambda call: _value(call.ledger.adapted_within(ADAPTED), ADAPTED),
    b"x-troy-leak": lambda call: _value(call.ledger.leak or ""),
    b"x-troy-retry-budget": lambda call: b"spent" if call.ledger.budget_spent else b"",
    b"x-troy-overhead-ms": _overhead,
}
"""Header → what it tells; a part with nothing to tell is left out."""
