"""`ports.Upstream` over pooled HTTP/1.1 connections, straight to the origin.

There is no redirect, no cookie, no proxy and no read timeout: the walk owns the clocks and cancels. A kept connection
that ends before a byte of an answer, or with a farewell, is no failure of the upstream: the request is sent once more,
on a new connection, under the same time to connect. `troyproxy.upstream.http` says why, and why never otherwise; the
rule is the same here.
"""

from __future__ import annotations

from asyncio import get_running_loop
from typing import Final

from troyproxy.catalog.providers import Provider
from troyproxy.ports import UpstreamFailed, UpstreamRequest
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.pooled.connection import Connection
from troyproxy.upstream.pooled.heads import Heads
from troyproxy.upstream.pooled.opening import Trust
from troyproxy.upstream.pooled.pool import Pool
from troyproxy.upstream.pooled.response import PooledResponse
from troyproxy.upstream.terms import KEEPALIVE_S, MAX_CONNECTIONS, TIMED_OUT, is_farewell

LEAST_S: Final = 0.001
"""A second try wants at least this; it is also what the loop's clock tells apart."""


class _Route:
    """How the requests of one provider leave: as it stands in one snapshot."""

    __slots__ = ("heads", "pool", "provider")

    def __init__(self, provider: Provider, heads: Heads, pool: Pool) -> None:
        self.provider, self.heads, self.pool = provider, heads, pool


class PooledUpstream:
    """Sends requests over kept connections; what another event loop has made is not touched."""

    def __init__(self, *, max_connections: int = MAX_CONNECTIONS, keepalive_s: float = KEEPALIVE_S) -> None:
        """*max_connections* bounds each provider's pool; an idle connection is closed after *keepalive_s* seconds."""
        self._max_connections, self._keepalive_s = max_connections, keepalive_s
        self._routes: dict[str, _Route] = {}
        self._retired: set[Pool] = set()
        self._trust = Trust()

    async def send(self, request: UpstreamRequest) -> PooledResponse:
        """Send *request* and return its head. Raises UpstreamFailed; cancelled, it closes its connection."""
        route = self._routes.get(request.provider.id)
        if route is None or route.provider is not request.provider or not route.pool.loop.is_running():
            route = self._route(request.provider)
        head, pool = route.heads.head(request), route.pool
        until = pool.loop.time() + request.connect_s
        connection = pool.kept() or await pool.connected(until)
        kept = connection.kept
        response = _asked(connection, head, request)
        try:
            await response.arrived()
        except UpstreamFailed as failed:
            orphaned = kept and not response.answered and failed.fault is Fault.RESET and not pool.closed
            if not orphaned or pool.loop.time() + LEAST_S >= until:
                raise
        else:
            if not kept or response.status != TIMED_OUT or not is_farewell(response.status, response.headers):
                return response
            if pool.closed or pool.loop.time() + LEAST_S >= until:
                return response
            await response.aclose()
        return await _again(pool, head, request, until)

    async def aclose(self) -> None:
        """End every exchange and close every connection; a later request begins anew."""
        pools = {pool for pool in (*(route.pool for route in self._routes.values()), *self._retired) if _ours(pool)}
        self._routes.clear()
        self._retired.clear()
        for pool in pools:
            await pool.aclose()

    def _route(self, provider: Provider) -> _Route:
        """Make the way to *provider*; its pool goes on unless the origin or whom it trusts has changed."""
        heads, old = Heads(provider), self._routes.get(provider.id)
        old = old if old is not None and _ours(old.pool) else None
        if old is not None and (old.heads.origin, old.provider.ca_file) == (heads.origin, provider.ca_file):
            pool = old.pool
        else:
            pool = Pool(
                heads.origin,
                self._trust.context(heads.origin.scheme, provider.ca_file),
                max_connections=self._max_connections,
                keepalive_s=self._keepalive_s,
            )
            if old is not None:
                old.pool.retire()
                self._retired = {retired for retired in (*self._retired, old.pool) if retired.used}
        route = self._routes[provider.id] = _Route(provider, heads, pool)
        return route


def _ours(pool: Pool) -> bool:
    """Whether *pool* is of the running loop; a host without a lifespan may have a new one for each request."""
    return pool.loop is get_running_loop()


async def _again(pool: Pool, head: bytes, request: UpstreamRequest, until: float) -> PooledResponse:
    """Send a second time, and the last. The first may have arrived, whatever becomes of this one."""
    try:
        response = _asked(await pool.fresh(until), head, request)
        await response.arrived()
    except UpstreamFailed as failed:
        raise UpstreamFailed(failed.fault, str(failed), body_sent=True) from failed
    return response


def _asked(connection: Connection, head: bytes, request: UpstreamRequest) -> PooledResponse:
    return connection.ask(head, request.body, bodiless=request.method == "HEAD")
