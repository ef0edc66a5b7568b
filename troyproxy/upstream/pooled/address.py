"""Where a URL points, in the pieces that a request and a connection are made of. No I/O.

Ordinary URLs are taken apart here. What needs more (escapes, dot segments, names that are not ASCII, addresses of
version 6, a query of its own) is httpx's affair, so that both adapters ask for the same target; the library is loaded
for those only, since that takes longer than a start may.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import urlencode

from troyproxy.ports import UpstreamFailed
from troyproxy.resilience.faults import Fault

Query = tuple[tuple[str, str], ...]

PORTS: Final = {"http": 80, "https": 443}
_PLAIN: Final = re.compile(
    r"(https?)://([a-z0-9]+(?:[.-][a-z0-9]+)*)(?::([1-9][0-9]{0,4}))?((?:/[A-Za-z0-9_~$&()*+,;=:@-][A-Za-z0-9._~$&()*+,;=:@-]*)*)"
)
_NUMBERS: Final = re.compile(r"[0-9.]+")
_QUAD: Final = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!$)|$)){4}")
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")


class Origin(NamedTuple):
    """What a connection belongs to, besides whom it trusts."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Address:
    """One URL."""

    origin: Origin
    netloc: str
    """As the host header has it."""
    target: str
    """As the request line has it."""
    userinfo: bytes = field(default=b"", repr=False)
    """``user:password`` as it stands in the URL."""


def address_of(url: str, query: Query) -> Address:
    """Return where *url* with *query* points. Raises UpstreamFailed (CONNECT) when that is nowhere."""
    match = _PLAIN.fullmatch(url)
    if match is None or not _is_plain(match[2]) or len({name for name, _ in query}) < len(query):
        return _by_library(url, query)
    scheme, host, port, path = match.groups()
    origin = Origin(scheme, host, int(port) if port else PORTS[scheme])
    if origin.port > 0xFFFF:
        raise _nowhere("InvalidURL")
    netloc = host if origin.port == PORTS[scheme] else f"{host}:{origin.port}"
    return Address(origin, netloc, (path or "/") + ("?" + urlencode(query) if query else ""))


def _is_plain(host: str) -> bool:
    return not _NUMBERS.fullmatch(host) or _QUAD.fullmatch(host) is not None


def _by_library(url: str, query: Query) -> Address:
    import httpx  # noqa: PLC0415 -- rare, and not cheap to load

    try:
        parsed = httpx.URL(url)
        if query:
            parsed = parsed.copy_merge_params(httpx.QueryParams(query))
        target, netloc = parsed.raw_path.decode("ascii"), parsed.netloc.decode("ascii")
    except (httpx.InvalidURL, UnicodeError) as exc:
        raise _nowhere(type(exc).__name__) from exc
    if parsed.scheme not in PORTS or not parsed.host or not _VISIBLE.fullmatch(target + netloc):
        raise _nowhere("UnsupportedProtocol")
    origin = Origin(parsed.scheme, parsed.raw_host.decode("ascii"), parsed.port or PORTS[parsed.scheme])
    return Address(origin, netloc, target, parsed.userinfo)


def _nowhere(detail: str) -> UpstreamFailed:
    return UpstreamFailed(Fault.CONNECT, detail)
