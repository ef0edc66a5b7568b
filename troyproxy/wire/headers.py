"""Which headers cross the gateway, in both directions: allow-lists, on bytes.

It does not know the ``x-troy-*`` story of a request (that is the proxy's) and it adds no framing: the hop that writes
the body writes ``host`` and ``content-length``. Whatever is not named here does not cross: hop-by-hop headers and those
nominated by ``Connection``, cookies, forwarding headers, the client's credential.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

Headers = tuple[tuple[bytes, bytes], ...]
"""Raw header pairs with lower-case names, in order, repeats kept."""

FROM_CLIENT: Final = frozenset(
    {
        *(b"accept", b"openai-beta", b"anthropic-version", b"anthropic-beta", b"http-referer", b"x-title"),
    },
)
"""What a client may set: what it takes, and vendor headers."""
TYPED: Final = FROM_CLIENT | {b"content-type"}
"""The same where the body is passed on as it came."""
FRAMING: Final = frozenset(
    {
        *(b"host", b"content-length", b"transfer-encoding", b"connection", b"keep-alive", b"proxy-connection"),
        *(b"te", b"trailer", b"upgrade", b"expect", b"accept-encoding"),
    },
)
"""Belongs to the hop that writes the body; a provider's fixed headers cannot set it either."""
REQUEST_IDS: Final = frozenset(
    {
        *(b"x-request-id", b"request-id", b"apim-request-id", b"x-ms-request-id", b"x-amzn-requestid"),
        *(b"x-generation-id", b"mistral-correlation-id", b"x-debug-trace-id"),
    },
)
"""How upstreams name a request: OpenAI, Groq and most others; Anthropic; Azure; AWS; OpenRouter; Mistral; Cohere."""
PERSISTENCE: Final = frozenset({b"keep-alive", b"close", b"Keep-Alive", b"Close"})
"""Values of ``Connection`` that nominate no header."""
HARMLESS: Final = frozenset(
    {
        *(b"application/json", b"application/json; charset=utf-8", b"*/*"),
        *(b"text/event-stream", b"text/event-stream; charset=utf-8"),
    },
)
"""Values that nearly all traffic has: they may stand on the wire as they are, and there is no secret in them."""
UPSTREAM_REQUEST_ID: Final = b"x-troy-upstream-request-id"
MAX_ID_BYTES: Final = 200

_PLAIN: Final = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
TOKEN: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def safe_value(value: bytes) -> bytes | None:
    """Return *value* as it may stand on the wire: None if it has control characters, non-ASCII percent-encoded."""
    if value in HARMLESS:
        return value
    value = value.strip(b" \t\r\n")
    if CONTROL.search(value):
        return None
    return value if value.isascii() else quote(value, safe=bytes(range(0x20, 0x7F))).encode()


def ascii_value(text: str, *, limit: int = 1024) -> bytes:
    """Return *text* for a diagnostic header: percent-encoded where it is not plain ASCII, at most *limit* bytes."""
    if text.isascii() and text.isprintable() and "%" not in text:
        return text.encode()[:limit]
    return quote(text, safe=_PLAIN, errors="replace").encode()[:limit]


def first(headers: Headers, name: bytes) -> bytes | None:
    """Return the first value under *name*."""
    for key, value in headers:
        if key == name:
            return value
    return None


def media_type(headers: Headers) -> str:
    """Return the content type without its parameters, in lower case; "" without one."""
    return (first(headers, b"content-type") or b"").partition(b";")[0].strip().lower().decode("latin-1")


def crossing(client: Headers, *, typed: bool) -> Headers:
    """Return what of a client's headers may go to an upstream; few may, whatever it sends.

    *typed*: its content type, too.
    """
    found: Headers = ()
    names = TYPED if typed else FROM_CLIENT
    for pair in client:
        if pair[0] in names:
            found = (*found, pair)
        elif pair[0] == b"connection" and pair[1] not in PERSISTENCE:
            return crossing(_without(client, pair[1]), typed=typed)
    return found


def all_harmless(headers: Headers) -> bool:
    """Whether there is nothing in *headers* but what nearly all traffic has."""
    for _, value in headers:  # noqa: SIM110 -- a generator costs more than all it runs over
        if value not in HARMLESS:
            return False
    return True


def _without(headers: Headers, listed: bytes) -> Headers:
    """Return *headers* without what a ``Connection`` lists: it ends at this hop (RFC 9110, section 7.6.1)."""
    nominated = {name.strip() for name in listed.lower().split(b",")}
    return tuple(pair for pair in headers if pair[0] not in nominated and pair != (b"connection", listed))


def to_client(upstream: Headers) -> Headers:
    """Return what a client gets of an upstream's headers: the content type, and request ids under our own name."""
    kind = b""
    named: Headers = ()
    for name, value in upstream:
        if name == b"content-type":
            kind = kind or value
        elif name in REQUEST_IDS:
            named = (*named, (name, value))
        elif name == b"connection" and value not in PERSISTENCE:
            return to_client(_without(upstream, value))
    safe = kind if kind in HARMLESS else safe_value(kind)
    told: Headers = ((b"content-type", safe),) if safe else ()
    ids = request_ids(named) if named else b""
    return (*told, (UPSTREAM_REQUEST_ID, ids)) if ids else told


def request_ids(upstream: Headers) -> bytes:
    """Return the upstream's request ids, joined by a comma, each once, whole ids only up to `MAX_ID_BYTES`."""
    joined = b""
    found: list[bytes] = []
    for name, value in upstream:
        safe = safe_value(value) if name in REQUEST_IDS else None
        if safe and safe not in found:
            found.append(safe)
            longer = joined + b", " + safe if joined else safe
            joined = longer if len(longer) <= MAX_ID_BYTES else joined
    return joined
