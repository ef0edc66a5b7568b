"""Which headers cross the gateway, in both directions: allow-lists, on bytes.

It does not know the ``x-troy-*`` story of a request (that is the proxy's) and it adds no framing: the hop that writes
the body writes ``host`` and ``content-length``. Whatever is not named here does not cross: hop-by-hop headers and those
nominated by ``Connection``, cookies, forwarding headers, the client's credential.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from troyproxy.catalog.providers import Provider
from troyproxy.catalog.secret import Secret
from troyproxy.version import VERSION

Headers = tuple[tuple[bytes, bytes], ...]

USER_AGENT: Final = f"troyproxy/{VERSION}".encode()
FROM_CLIENT: Final = frozenset(
    {b"openai-beta", b"anthropic-version", b"anthropic-beta", b"http-referer", b"x-title"},
)
"""Vendor headers that a client may set."""
FRAMING: Final = frozenset(
    {
        *(b"host", b"content-length", b"transfer-encoding", b"connection", b"keep-alive", b"proxy-connection"),
        *(b"te", b"trailer", b"upgrade", b"expect", b"accept-encoding"),
    },
)
"""Belongs to the hop that writes the body; a provider's fixed headers cannot set it either."""
REQUEST_IDS: Final = (
    *(b"x-request-id", b"request-id", b"apim-request-id", b"x-ms-request-id", b"x-amzn-requestid"),
    *(b"x-generation-id", b"mistral-correlation-id", b"x-debug-trace-id"),
)
"""How upstreams name a request: OpenAI, Groq and most others; Anthropic; Azure; AWS; OpenRouter; Mistral; Cohere."""
UPSTREAM_REQUEST_ID: Final = b"x-troy-upstream-request-id"
MAX_ID_BYTES: Final = 200

_PLAIN: Final = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
_TOKEN: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def safe_value(value: bytes) -> bytes | None:
    """Return *value* as it may stand on the wire: None if it has control characters, non-ASCII percent-encoded."""
    value = value.strip(b" \t\r\n")
    if _CONTROL.search(value):
        return None
    return value if value.isascii() else quote(value, safe=bytes(range(0x20, 0x7F))).encode()


def ascii_value(text: str, *, limit: int = 1024) -> bytes:
    """Return *text* for a diagnostic header: percent-encoded where it is not plain ASCII, at most *limit* bytes."""
    if text.isascii() and text.isprintable() and "%" not in text:
        return text.encode()[:limit]
    return quote(text, safe=_PLAIN, errors="replace").encode()[:limit]


def first(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """Return the first value under *name* (lower case)."""
    return next((value for key, value in headers if key.lower() == name), None)


def media_type(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the content type without its parameters, in lower case; "" without one."""
    return (first(headers, b"content-type") or b"").partition(b";")[0].strip().lower().decode("latin-1")


def end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return *headers* without those that ``Connection`` nominates: they end at this hop (RFC 9110, section 7.6.1)."""
    headers = tuple(headers)
    listed = b",".join(value for name, value in headers if name.lower() == b"connection").lower().split(b",")
    nominated = {name.strip() for name in listed}
    return tuple((name, value) for name, value in headers if name.lower() not in nominated)


def credential(provider: Provider, api_key: Secret | None) -> Headers:
    """Return the one header that carries *api_key*, or none: keyless provider, no key, or a key no header can carry."""
    text = api_key.reveal().strip() if api_key is not None else ""
    if provider.auth.header is None or not text:
        return ()
    value = f"{provider.auth.prefix}{text}"
    if not value.isascii() or _CONTROL.search(value.encode()):
        return ()
    return _pairs([(provider.auth.header, value)])


def build_headers(
    provider: Provider,
    api_key: Secret | None,
    client: Iterable[tuple[bytes, bytes]],
    request_id: str,
    *,
    content_type: bytes | None = None,
    extra: Headers = (),
) -> Headers:
    """Return everything that goes to the upstream except framing.

    *content_type* overrides the client's (a body that was encoded anew is JSON). *extra* is for trace context. The
    strongest source of a name wins and the others are gone: credential, then the provider's fixed headers, then ours,
    then the client's.
    """
    client = end_to_end(client)
    ours = (
        (b"content-type", content_type or first(client, b"content-type") or b"application/json"),
        (b"accept", first(client, b"accept") or b"*/*"),
        (b"user-agent", USER_AGENT),
        (b"x-request-id", ascii_value(request_id, limit=MAX_ID_BYTES)),
        *extra,
    )
    vendor = tuple((name.lower(), value) for name, value in client if name.lower() in FROM_CLIENT)
    fixed = tuple((name, value) for name, value in _pairs(provider.headers) if name not in FRAMING)
    layers = credential(provider, api_key), fixed, (*ours, (b"accept-encoding", b"identity")), vendor
    return _strongest(layers)


def to_client(upstream: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return what a client gets of an upstream's headers: the content type, and request ids under our own name."""
    upstream = end_to_end(upstream)
    out: list[tuple[bytes, bytes]] = []
    content_type = safe_value(first(upstream, b"content-type") or b"")
    if content_type:
        out.append((b"content-type", content_type))
    if ids := request_ids(upstream):
        out.append((UPSTREAM_REQUEST_ID, ids))
    return tuple(out)


def request_ids(upstream: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the upstream's request ids, joined by a comma, each once, whole ids only up to `MAX_ID_BYTES`."""
    found = {safe_value(value) or b"": None for name, value in upstream if name.lower() in REQUEST_IDS}
    joined = b""
    for value in filter(None, found):
        longer = joined + b", " + value if joined else value
        joined = longer if len(longer) <= MAX_ID_BYTES else joined
    return joined


def _pairs(headers: Iterable[tuple[str, str]]) -> Headers:
    encoded = ((name.lower().encode(), value.encode()) for name, value in headers)
    return tuple((name, value) for name, value in encoded if _TOKEN.fullmatch(name))


def _strongest(layers: Iterable[Headers]) -> Headers:
    out: list[tuple[bytes, bytes]] = []
    for layer in layers:
        taken = {name for name, _ in out}
        safe = ((name, safe_value(value)) for name, value in layer if name not in taken)
        out += [(name, value) for name, value in safe if value is not None]
    return tuple(out)
