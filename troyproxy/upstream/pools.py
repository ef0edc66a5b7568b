"""Connection pools: one per provider, replaced when the provider's address, proxy or trust changes.

A replaced pool lives until its last response is closed. Nothing of the environment is used but the proxy variables;
there is no cookie jar, no netrc, no redirect, and the library adds no header of its own.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from troyproxy.catalog.providers import Provider
from troyproxy.ports import Headers, UpstreamFailed
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.connections import Connector
from troyproxy.upstream.failures import Progress, failures, tracing
from troyproxy.upstream.proxies import proxy_for, proxy_variables
from troyproxy.upstream.terms import basic

MAX_HEADER_BYTES: Final = 1 << 15
"""One response header line; some vendors send long policies."""


class PoolKey(NamedTuple):
    """What makes a pool another pool."""

    provider: str
    base_url: str
    proxy: str | None
    ca_file: str | None


@dataclass(slots=True, eq=False)
class Pool:
    """One transport and the number of requests that use it."""

    key: PoolKey
    transport: httpx.AsyncBaseTransport
    headers: Headers = field(default=(), repr=False)
    """A plain HTTP proxy reads its credential from the request itself, a tunnelling one from CONNECT."""
    users: int = 0
    retired: bool = False


class Pools:
    """Every pool by provider id.

    *env* is read once, for ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``.
    """

    def __init__(self, env: Mapping[str, str], *, max_connections: int, keepalive_s: float) -> None:
        self._env = proxy_variables(env)
        self._max_connections = max_connections
        self._keepalive_s = keepalive_s
        self._current: dict[str, Pool] = {}
        self._retired: set[Pool] = set()
        self._system_trust: ssl.SSLContext | None = None

    async def lease(self, provider: Provider) -> Pool:
        """Return the provider's pool, counted as used until `release`. Raises UpstreamFailed (TLS) on a bad CA file."""
        proxy = provider.proxy or proxy_for(provider.base_url, self._env)
        key = PoolKey(provider.id, provider.base_url, proxy, provider.ca_file)
        pool = self._current.get(provider.id)
        if pool is None or pool.key != key:
            fresh = self._open(key)
            fresh.users = 1
            self._current[provider.id] = fresh
            if pool is not None:
                await self._retire(pool)
            return fresh
        pool.users += 1
        return pool

    async def release(self, pool: Pool) -> None:
        """Give a lease back; the last one of a replaced pool closes it."""
        pool.users -= 1
        if pool.retired and pool.users == 0:
            self._retired.discard(pool)
            await pool.transport.aclose()

    async def aclose(self) -> None:
        """Close every pool, used or not."""
        pools = [*self._current.values(), *self._retired]
        self._current.clear()
        self._retired.clear()
        for pool in pools:
            await pool.transport.aclose()

    async def _retire(self, pool: Pool) -> None:
        pool.retired = True
        self._retired.add(pool)
        pool.users += 1
        await self.release(pool)

    def _open(self, key: PoolKey) -> Pool:
        trust = self._trust(key)
        proxy = _proxy(key.proxy) if key.proxy else None
        transport = AiohttpTransport(verify=trust, proxy=proxy, client=lambda: self._session(trust))
        plain = proxy is not None and urlsplit(key.base_url).scheme == "http"
        return Pool(key, transport, tuple(proxy.headers.raw) if proxy and plain else ())

    def _session(self, trust: ssl.SSLContext) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=Connector(trust, limit=self._max_connections, keepalive_s=self._keepalive_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            trace_configs=[tracing()],
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )
        session._retry_connection = False  # noqa: SLF001 -- its own second try of a GET asks less than `http.py` does
        return session

    def _trust(self, key: PoolKey) -> ssl.SSLContext:
        if key.ca_file is not None:
            try:
                return ssl.create_default_context(cafile=key.ca_file)
            except OSError as exc:
                raise UpstreamFailed(Fault.TLS, f"ca_file cannot be read: {exc.strerror}") from exc
        if urlsplit(key.base_url).scheme != "https":
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # never used, and loading the roots takes 20 ms
        self._system_trust = self._system_trust or httpx.create_ssl_context(trust_env=False)
        return self._system_trust


def _proxy(address: str) -> httpx.Proxy:
    """Return the proxy at *address*, its credential as a header: the transport's own way is deprecated in aiohttp."""
    with failures(Progress()):
        url = httpx.URL(address)
    headers = [(b"proxy-authorization", basic(url.userinfo))] if url.userinfo else []
    return httpx.Proxy(url.copy_with(userinfo=b""), headers=headers)
