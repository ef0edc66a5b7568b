"""Request heads: what of them depends on provider, method and path only is written once and kept.

Framing is ours alone. What cannot stand in a head (a line break or NUL in a value, a name that is no token) fails the
request before a byte of it is sent: it would be read as a header, or as a request, of its own.
"""

from __future__ import annotations

import re
from typing import Final, TypeVar

from troyproxy.catalog.providers import Provider
from troyproxy.ports import UpstreamFailed, UpstreamRequest
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.pooled.address import Origin, address_of
from troyproxy.upstream.terms import OURS, basic
from troyproxy.wire.heads import USER_AGENT

MAX_KEPT: Final = 256
"""First lines, and header names, that are remembered."""

_TOKEN: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_METHOD: Final = re.compile(r"[A-Z]{1,20}")
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_AGENT: Final = b"\r\nuser-agent: "
_CREDENTIAL: Final = b"\r\nauthorization: "

Key = TypeVar("Key")


class Heads:
    """Writes the heads of one provider's requests."""

    def __init__(self, provider: Provider) -> None:
        """Raise UpstreamFailed (CONNECT) when the provider has no address."""
        base = address_of(provider.base_url, ())
        self.origin: Origin = base.origin
        self._base_url, self._query = provider.base_url.rstrip("/"), provider.query
        self._basic = basic(base.userinfo) if base.userinfo else b""
        self._firsts: dict[tuple[str, str], bytes] = {}
        self._names: dict[bytes, bytes] = {}

    def head(self, request: UpstreamRequest) -> bytes:
        """Return the head of *request*. Raises UpstreamFailed (PROTOCOL) when no head can carry it."""
        first = self._firsts.get((request.method, request.path)) or self._first(request.method, request.path)
        names = self._names
        parts = [first]
        for name, value in request.headers:
            start = names.get(name)
            if start is None:
                start = self._start(name)
            if start:
                parts.append(start + value)
        if request.body or request.method in _WITH_BODY:
            parts.append(b"content-length: %d" % len(request.body))
        head, breaks = b"\r\n".join(parts), len(parts)  # one between two of them, and one in the first
        if _AGENT not in head:
            head, breaks = head + _AGENT + USER_AGENT, breaks + 1
        if self._basic and _CREDENTIAL not in head:
            head, breaks = head + _CREDENTIAL + self._basic, breaks + 1
        if head.count(b"\n") != breaks or head.count(b"\r") != breaks or b"\0" in head:
            raise _unfit("a header value with a line break")
        return head + b"\r\n\r\n"

    def _first(self, method: str, path: str) -> bytes:
        if not _METHOD.fullmatch(method):
            raise _unfit("no method")
        address = address_of(self._base_url + path, self._query)
        if address.origin != self.origin:
            raise UpstreamFailed(Fault.CONNECT, "the path leads to another origin")
        first = f"{method} {address.target} HTTP/1.1\r\nhost: {address.netloc}".encode("ascii")
        return _remembered(self._firsts, (method, path), first)

    def _start(self, name: bytes) -> bytes:
        """Return what stands before the value under *name*; nothing for framing, which is not taken from outside."""
        if not _TOKEN.fullmatch(name):
            raise _unfit("a header name that is none")
        lowered = name.lower()
        return _remembered(self._names, name, b"" if lowered in OURS else lowered + b": ")


def _remembered(kept: dict[Key, bytes], key: Key, value: bytes) -> bytes:
    if len(kept) >= MAX_KEPT:
        kept.clear()
    kept[key] = value
    return value


def _unfit(detail: str) -> UpstreamFailed:
    return UpstreamFailed(Fault.PROTOCOL, detail)
