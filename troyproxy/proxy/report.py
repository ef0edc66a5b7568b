"""The ``x-troy-*`` headers: the compact story of a request, for its client.

ASCII, percent-encoded where needed, together under 1 KiB, no URL, no upstream message, no secret. With
``TROY_EXPOSE=id`` a client sees the request id, the attempts and retry-after only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

from troyproxy.accounting.limits import Standing, spoken
from troyproxy.accounting.records import AttemptRecord
from troyproxy.catalog.secret import Secret
from troyproxy.ports import Headers
from troyproxy.proxy.call import Call
from troyproxy.proxy.ledger import Ledger
from troyproxy.proxy.masking import discreet
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.routing.names import NameKind
from troyproxy.wire.headers import all_harmless, ascii_value, to_client

LONG: Final = 200
"""Bytes of the longest story header; the others are short by nature."""
SHORT: Final = 72
ADAPTED: Final = 160
CUT: Final = 80
"""Characters of a name that can be told: nothing is as long as that when it is encoded, and encoding shortens none."""
REQUEST_ID: Final = b"x-troy-request-id"
ATTEMPTS: Final = b"x-troy-attempts"
STREAM_HEADERS: Final[Headers] = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))
NO_STORE: Final[Headers] = ((b"cache-control", b"no-store"),)
EVENT_STREAM: Final = (b"content-type", b"text/event-stream; charset=utf-8")
JSON: Final = (b"content-type", b"application/json")
RATES: Final = b"x-ratelimit-"
_HALF_ESCAPE: Final = re.compile(rb"%[0-9A-F]?\Z")


def commit_headers(call: Call, policy: WalkPolicy, upstream: Headers, secret: Secret | None = None) -> Headers:
    """Return the head of an answer that an upstream gives, without what shows the *secret* of its account.

    By now the body is known for what it is; a content type that says otherwise would lead the layers outside astray.
    """
    given = to_client(upstream)
    if secret is not None and not all_harmless(given) and discreet(given, secret) != given:
        given = to_client(discreet(upstream, secret))
    kind = given[0][1] if given and given[0][0] == b"content-type" else b""
    if not _fits(kind, stream=call.stream):
        given = (EVENT_STREAM if call.stream else JSON, *(given[1:] if kind else given))
    own = STREAM_HEADERS if call.stream else NO_STORE
    head = (*given, *own, *story(call, policy))
    return head if policy.expose != "id" else exposed(head, policy)


def _fits(kind: bytes, *, stream: bool) -> bool:
    """Whether a content type is what a body is that is known to be one."""
    return kind.lower().startswith(b"text/event-stream") if stream else kind == JSON[1] or b"json" in kind.lower()


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
    return (EVENT_STREAM, *STREAM_HEADERS, (REQUEST_ID, call.request_id.encode("ascii")))


def exposed(headers: Headers, policy: WalkPolicy) -> Headers:
    """Return what of *headers* a client may see."""
    if policy.expose != "id":
        return headers
    return tuple(pair for pair in headers if not pair[0].startswith(b"x-troy-") or pair[0] in {REQUEST_ID, ATTEMPTS})


def story(call: Call, policy: WalkPolicy, *, known: Collection[bytes] = ()) -> Headers:
    """Return the request's story so far, but for the headers that are *known* already."""
    ledger, request_id = call.ledger, (REQUEST_ID, call.request_id.encode("ascii"))
    if policy.expose == "id":
        told: Headers = (request_id, (ATTEMPTS, b"%d" % len(ledger.attempts)))
    elif _is_plain(ledger):
        served = ledger.attempts[0]
        combo, order = _order(call)
        target = served.provider[:CUT], served.model[:CUT], served.account[:CUT]
        told = (request_id, *_plain(target, combo, order, tuple(ledger.adapted)), *_overhead(ledger))
    else:
        told = (request_id, *_told(ledger, *_order(call)), *_overhead(ledger))
    return tuple(pair for pair in told if pair[0] not in known) if known else told


def _order(call: Call) -> tuple[str, str]:
    """Return the combo that was asked for, and what ordered its members; "" where there is none."""
    found, marks = call.resolution, call.ledger.marks
    if found is None or (found.combo is None and found.kind is not NameKind.AUTO):
        return "", ";".join(("", *marks)) if marks else ""
    order = call.strategy or ""
    return (call.combo_name or "")[:CUT], (";".join((order, *marks)) if marks else order)[:CUT]


def _is_plain(ledger: Ledger) -> bool:
    """Whether the first attempt served, and there is nothing else to tell, as almost always."""
    attempts = ledger.attempts
    if not (ledger.served and attempts) or attempts[1:] or attempts[0].outcome != "ok" or attempts[0].handoff:
        return False
    if ledger.adapted and (ledger.adapted[1:] or ledger.adapted[0][CUT:]):  # one change is usual, and worded shortly
        return False
    return not (ledger.skipped or ledger.leak or ledger.budget_spent)


@lru_cache(maxsize=4096)
def _plain(target: tuple[str, str, str], combo: str, order: str, adapted: tuple[str, ...]) -> Headers:
    """Return what is told of a plain request: who serves are few, and they come again and again."""
    provider, model, account = target
    served = AttemptRecord(provider, model, account, "ok", 200, 0.0, 0.0)
    ledger = Ledger([served], adapted=adapted, provider=provider, model=model, account=account, served=True)
    return _told(ledger, combo, order)


def _told(ledger: Ledger, combo: str, order: str) -> Headers:
    """Return who serves, by which order, and what happened until now; a part with nothing to tell is left out."""
    told: Headers = ((ATTEMPTS, b"%d" % len(ledger.attempts)),)
    if ledger.served:
        told = (*told, (b"x-troy-model", _value(f"{ledger.provider}/{ledger.model}")))
    if ledger.account:
        told = (*told, (b"x-troy-account", _value(ledger.account)))
    if combo:
        told = (*told, (b"x-troy-combo", _value(combo)))
    if order:
        told = (*told, (b"x-troy-strategy", _value(order)))
    return (*told, *_way(ledger))


def _way(ledger: Ledger) -> Headers:
    trail = ledger.trail_within(LONG)
    told: Headers = ((b"x-troy-trail", trail.encode()),) if trail else ()
    if ledger.skipped:
        told = (*told, (b"x-troy-skipped", ledger.skips_within(LONG).encode()))
    if ledger.adapted:
        told = (*told, (b"x-troy-adapted", _value(ledger.adapted_within(ADAPTED), ADAPTED)))
    if ledger.leak:
        told = (*told, (b"x-troy-leak", _value(ledger.leak)))
    if ledger.budget_spent:
        told = (*told, (b"x-troy-retry-budget", b"spent"))
    return told


def _overhead(ledger: Ledger) -> Headers:
    return () if ledger.overhead_s is None else _spent(round(ledger.overhead_s * 10_000))


@lru_cache(maxsize=1024)
def _spent(tenths: int) -> Headers:
    """Return what is told of an overhead in *tenths* of a millisecond: most are a few."""
    return ((b"x-troy-overhead-ms", b"%d.%d" % divmod(tenths, 10)),)


def rate_headers(standings: Iterable[Standing]) -> Headers:
    """Return ``x-ratelimit-{limit,remaining,reset}-{requests,tokens}``, for the rates that are limited."""
    return tuple(pair for standing in standings for pair in _rate(standing))


def _rate(standing: Standing) -> Headers:
    name = standing.name.encode()
    told = ((b"limit", standing.limit), (b"remaining", standing.remaining), (b"reset", spoken(standing.reset_s)))
    return tuple((b"%b%b-%b" % (RATES, what, name), str(value).encode()) for what, value in told)


def _value(text: str, limit: int = SHORT) -> bytes:
    """Return *text* for a header; a cut never leaves half an escape."""
    return _HALF_ESCAPE.sub(b"", ascii_value(text, limit=limit))
