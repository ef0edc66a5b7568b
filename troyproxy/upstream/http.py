"""Requests over the network: `ports.Upstream` on an httpx transport (httpx-aiohttp; httpx's own carries no traffic).

The transport is used directly, without ``httpx.AsyncClient``: redirects, cookies, authentication and the logging of
URLs live in the client, and none of them is wanted here. There is no read timeout: the walk owns the clocks and
cancels. A retry of what an upstream refused is the walk's affair too.

One request is sent twice here: the one whose kept connection ended before a byte of an answer. A server may close a
connection that it holds for idle while a request is on its way, and then has not seen it (RFC 9112, section 9.5).
Nobody failed, so neither the walk nor a breaker should hear of it. A farewell instead of silence (`terms.is_farewell`)
is the same: the server has not read the request, and says so. Section 9.3.1 there and 9.2.2 of RFC 9110 allow a second
try where the method is idempotent or the request was never applied; a POST on a kept connection that ends in silence
is the latter as far as a client can tell, and a completion changes no state. What doubt is left is kept small: nothing
is sent again when the connection was new, when a byte of anything else came back, when the time to connect is over
(the upstream was at work: no idle close takes that long), or on a timeout or a cancellation. The second try takes a new
connection, where there is no such race, and is the last.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack

import httpx
import msgspec

from troyproxy.ports import Ear, Headers, UpstreamFailed, UpstreamRequest, UpstreamResponse, gathered
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.decoding import decoded
from troyproxy.upstream.failures import PROGRESS, Progress, failures
from troyproxy.upstream.pools import Pool, Pools
from troyproxy.upstream.terms import KEEPALIVE_S, MAX_CONNECTIONS, OURS, basic, is_farewell
from troyproxy.wire.heads import USER_AGENT


class HttpxUpstream:
    """Sends requests over pooled HTTP/1.1 connections. Make it inside the loop that uses it."""

    def __init__(
        self,
        *,
        env: Mapping[str, str] | None = None,
        max_connections: int = MAX_CONNECTIONS,
        keepalive_s: float = KEEPALIVE_S,
    ) -> None:
        """*env* gives the proxy variables (default: the process's); *max_connections* bounds each provider's pool.

        An idle connection is closed after *keepalive_s* seconds.
        """
        self._pools = Pools(
            os.environ if env is None else env,
            max_connections=max_connections,
            keepalive_s=keepalive_s,
        )

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        """Send *request*; its connection is busy until the response is read to the end or closed."""
        async with AsyncExitStack() as stack:
            pool = await self._pools.lease(request.provider)
            stack.push_async_callback(self._pools.release, pool)
            response, progress = await _ask(pool, request)
            stack.push_async_callback(response.stream.aclose)  # type: ignore[union-attr]  # an async transport's is async
            source = _Source(response, progress)
            stack.push_async_callback(source.aclose)
            return HttpxResponse(response, source, stack.pop_all())
        raise AssertionError("unreachable")  # pragma: no cover -- the stack suppresses nothing

    async def aclose(self) -> None:
        """Close every pool."""
        await self._pools.aclose()


async def _ask(pool: Pool, request: UpstreamRequest) -> tuple[httpx.Response, Progress]:
    """Return the head and how it came; a second try shares the first one's time to connect."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + request.connect_s
    progress = Progress()
    try:
        response = await _try(pool, request, progress)
    except UpstreamFailed as failed:
        left_s = deadline - loop.time()
        if failed.fault is not Fault.RESET or not progress.orphaned or left_s <= 0:
            raise
    else:
        left_s = deadline - loop.time()
        if not progress.reused or left_s <= 0 or not is_farewell(response.status_code, _raw(response)):
            return response, progress
        await response.stream.aclose()  # type: ignore[union-attr]  # an async transport's is async
    progress = Progress(fresh=True)
    return await _try(pool, msgspec.structs.replace(request, connect_s=left_s), progress), progress


async def _try(pool: Pool, request: UpstreamRequest, progress: Progress) -> httpx.Response:
    PROGRESS.set(progress)
    with failures(progress):
        return await pool.transport.handle_async_request(outgoing(request, pool.headers))


def _raw(response: httpx.Response) -> Headers:
    return tuple((name.lower(), value) for name, value in response.headers.raw)


class HttpxResponse:
    """A response in transit; it owns its connection until `aclose` or the end of the body."""

    whole: bytes | None = None  # the library does not tell

    def __init__(self, response: httpx.Response, source: _Source, resources: AsyncExitStack) -> None:
        self.status: int = response.status_code
        self.headers, self._body = decoded(self.status, _raw(response), source)
        self._resources = resources

    def chunks(self) -> AsyncIterator[bytes]:
        """Return the body, to be read once."""
        return self._body

    async def read(self, limit: int, into: list[bytes], /) -> bool:
        """Put the body into *into*, unless it is over *limit* bytes."""
        return await gathered(self._body, limit, into)

    def listen(self, ear: Ear, /) -> None:
        """Offer nothing: the library's bodies are pulled."""

    async def aclose(self) -> None:
        """Free the connection: it is reused when the body had arrived whole, else closed."""
        await self._resources.aclose()


class _Source:
    """The body as it arrives. It closes the transport's generator itself, so that none is left to the collector."""

    def __init__(self, response: httpx.Response, progress: Progress) -> None:
        self._inner = response.stream.__aiter__()  # type: ignore[union-attr]  # an async transport's stream is async
        self._progress = progress
        self._reading = self._closed = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._closed:
            raise UpstreamFailed(Fault.RESET, "the response was closed", body_sent=True)
        self._reading = True
        try:
            with failures(self._progress):
                return await anext(self._inner)
        finally:
            self._reading = False

    async def aclose(self) -> None:
        self._closed = True
        if isinstance(self._inner, AsyncGenerator) and not self._reading:  # a pending read ends with its connection
            await self._inner.aclose()


def outgoing(request: UpstreamRequest, hop: Headers = ()) -> httpx.Request:
    """Return the request for the transport: the caller's headers, framing, and a user agent when it has none.

    *hop* goes to a proxy. Raises UpstreamFailed (CONNECT) when the base URL is none.
    """
    provider = request.provider
    with failures(Progress()):
        url = httpx.URL(provider.base_url.rstrip("/") + request.path)
        if provider.query:
            url = url.copy_merge_params(httpx.QueryParams(provider.query))
    headers = [(name, value) for name, value in request.headers if name not in OURS]
    headers += hop
    names = {name for name, _ in headers}
    if b"user-agent" not in names:
        headers.append((b"user-agent", USER_AGENT))
    if url.userinfo and b"authorization" not in names:
        headers.append((b"authorization", basic(url.userinfo)))
    return httpx.Request(
        request.method,
        url.copy_with(userinfo=b""),
        headers=headers,
        content=request.body,
        extensions={"timeout": {"pool": request.connect_s}},  # here: slot, name, TCP and TLS together
    )
