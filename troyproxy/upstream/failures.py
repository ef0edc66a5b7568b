"""Where exceptions of the client libraries stop: a table from their classes to `Fault`. Cancellation passes.

The transport's own mapping is not precise enough (a refused connection arrives as ``ConnectTimeout``), so the cause is
read first. Details name classes and system errors only: a library's message may contain the URL with its query.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Final

import aiohttp
import httpx

from troyproxy.ports import UpstreamFailed
from troyproxy.resilience.faults import Fault


@dataclass(slots=True)
class Progress:
    """How far one request came; written by the session's trace and the connection."""

    queued: bool = False
    """It waits for a slot of our own pool."""
    sent: bool = False
    """Bytes of it were handed to a connection, so the upstream may act on it."""
    reused: bool = False
    """Its connection had served before."""
    answered: bool = False
    """A byte came back."""
    fresh: bool = False
    """A second try: a kept connection ended under the first, and only a new one will do."""

    @property
    def orphaned(self) -> bool:
        """Whether it was given to a kept connection that brought no byte of an answer."""
        return self.reused and not self.answered


PROGRESS: Final[ContextVar[Progress]] = ContextVar("troyproxy_upstream_progress")
"""The request that the running task sends; the one way past a transport that hides aiohttp's trace context."""

_TABLE: Final[tuple[tuple[type[BaseException], Fault], ...]] = (  # specific first
    (aiohttp.ServerTimeoutError, Fault.TIMEOUT_CONNECT),  # no read timeout is ever set
    (aiohttp.ClientSSLError, Fault.TLS),
    (aiohttp.ClientConnectorError, Fault.CONNECT),
    (aiohttp.ClientHttpProxyError, Fault.CONNECT),
    (aiohttp.ClientPayloadError, Fault.RESET),
    (aiohttp.ClientConnectionError, Fault.RESET),
    (aiohttp.InvalidURL, Fault.CONNECT),
    (aiohttp.NonHttpUrlClientError, Fault.CONNECT),
    (aiohttp.ClientError, Fault.PROTOCOL),
    (httpx.PoolTimeout, Fault.SATURATED),
    (httpx.ConnectTimeout, Fault.TIMEOUT_CONNECT),
    (httpx.TimeoutException, Fault.TIMEOUT_FIRST_BYTE),
    (httpx.ConnectError, Fault.CONNECT),
    (httpx.ProxyError, Fault.CONNECT),
    (httpx.UnsupportedProtocol, Fault.CONNECT),
    (httpx.NetworkError, Fault.RESET),
    (httpx.TransportError, Fault.PROTOCOL),
    (httpx.InvalidURL, Fault.CONNECT),
    (ssl.SSLError, Fault.TLS),
    (OSError, Fault.RESET),
    (UnicodeError, Fault.CONNECT),  # a host name that IDNA refuses
    (RuntimeError, Fault.RESET),  # how aiohttp says that its session was closed meanwhile
)
FOREIGN: Final = (httpx.TransportError, httpx.InvalidURL, aiohttp.ClientError, OSError, UnicodeError, RuntimeError)
_NEVER_SENT: Final = frozenset({Fault.CONNECT, Fault.TLS, Fault.TIMEOUT_CONNECT, Fault.SATURATED})


@contextmanager
def failures(progress: Progress) -> Iterator[None]:
    """Re-raise what the client libraries raise as UpstreamFailed."""
    try:
        yield
    except FOREIGN as exc:
        raise failed(exc, progress) from exc


def failed(exc: BaseException, progress: Progress) -> UpstreamFailed:
    """Return *exc* in our terms."""
    origin = exc.__cause__ if isinstance(exc, httpx.TransportError) and exc.__cause__ is not None else exc
    fault = next((fault for cls, fault in _TABLE if isinstance(origin, cls)), Fault.PROTOCOL)
    if fault is Fault.TIMEOUT_CONNECT and progress.queued:
        fault = Fault.SATURATED
    sent = progress.fresh or (progress.sent and fault not in _NEVER_SENT)  # a first try was sent in any case
    return UpstreamFailed(fault, _detail(origin), body_sent=sent)


def _detail(exc: BaseException) -> str:
    inner = exc.os_error if isinstance(exc, aiohttp.ClientConnectorError) else exc
    if isinstance(inner, ssl.SSLError):
        return f"{type(exc).__name__}: {getattr(inner, 'reason', None) or 'no reason given'}"
    if isinstance(inner, OSError) and inner.errno is not None and inner.errno > 0:  # `strerror` may hold the address
        return f"{type(exc).__name__}: {os.strerror(inner.errno)}"
    return type(exc).__name__


def tracing() -> aiohttp.TraceConfig:
    """Return the trace that keeps `Progress` up to date."""
    trace = aiohttp.TraceConfig(trace_config_ctx_factory=_Context)
    trace.on_connection_queued_start.append(_queued)
    trace.on_connection_queued_end.append(_unqueued)
    trace.on_request_headers_sent.append(_sent)
    return trace


class _Context(SimpleNamespace):
    """aiohttp makes one per request, in the task that sends it."""

    def __init__(self, *, trace_request_ctx: object = None) -> None:
        super().__init__(progress=PROGRESS.get(Progress()), trace_request_ctx=trace_request_ctx)


async def _queued(_session: aiohttp.ClientSession, ctx: SimpleNamespace, _params: object) -> None:
    ctx.progress.queued = True


async def _unqueued(_session: aiohttp.ClientSession, ctx: SimpleNamespace, _params: object) -> None:
    ctx.progress.queued = False


async def _sent(_session: aiohttp.ClientSession, ctx: SimpleNamespace, _params: object) -> None:
    ctx.progress.sent = True
