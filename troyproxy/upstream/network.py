"""The network adapter that the settings name: pooled HTTP/1.1 of our own, or an httpx transport.

What lies behind a proxy always takes the latter. It is loaded when the first such request comes: it takes longer to
load than the rest of the gateway.
"""

from __future__ import annotations

import os
from collections.abc import Coroutine, Mapping

from troyproxy.catalog.providers import Provider
from troyproxy.ports import Upstream, UpstreamRequest, UpstreamResponse
from troyproxy.upstream.pooled.adapter import PooledUpstream
from troyproxy.upstream.proxies import proxy_for, proxy_variables

MAX_KEPT = 1024
"""Providers of which is remembered whether they lie behind a proxy."""


def network(transport: str, *, env: Mapping[str, str] | None = None) -> Upstream:
    """Return the adapter called *transport*, ``fast`` or ``httpx``; *env* names proxies (default: the process's)."""
    variables = proxy_variables(os.environ if env is None else env)
    return over_httpx(variables) if transport == "httpx" else FastUpstream(variables)


def over_httpx(env: Mapping[str, str]) -> Upstream:
    """Return the httpx adapter."""
    from troyproxy.upstream.http import HttpxUpstream  # noqa: PLC0415 -- a fifth of the time that a start takes

    return HttpxUpstream(env=env)


class FastUpstream:
    """Sends over pooled connections what goes straight to its origin, and through the httpx adapter what does not."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """*env* holds the proxy variables."""
        self._env = env
        self._direct = PooledUpstream()
        self._proxied: Upstream | None = None
        self._ways: dict[str, tuple[Provider, bool]] = {}

    def send(self, request: UpstreamRequest) -> Coroutine[object, None, UpstreamResponse]:
        """Send *request* the way that its provider needs."""  # no coroutine of its own: this is on every request's way
        way = self._ways.get(request.provider.id)
        if way is None or way[0] is not request.provider:
            way = self._way(request.provider)
        if way[1]:
            return self._through_proxy().send(request)
        return self._direct.send(request)

    async def aclose(self) -> None:
        """Close every pool."""
        await self._direct.aclose()
        if self._proxied is not None:
            await self._proxied.aclose()

    def _way(self, provider: Provider) -> tuple[Provider, bool]:
        if len(self._ways) >= MAX_KEPT:
            self._ways.clear()
        proxied = bool(provider.proxy or proxy_for(provider.base_url, self._env))
        way = self._ways[provider.id] = provider, proxied
        return way

    def _through_proxy(self) -> Upstream:
        if self._proxied is None:
            self._proxied = over_httpx(self._env)
        return self._proxied
