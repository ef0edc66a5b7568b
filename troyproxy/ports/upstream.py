"""The way to providers: raw header pairs, requests, responses whose body is pulled, and how a transport fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

from troyproxy.catalog.providers import Provider
from troyproxy.resilience.faults import Fault

Headers = tuple[tuple[bytes, bytes], ...]
"""Raw header pairs with lower-case names, in order, repeats kept."""


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """One HTTP request to one provider. `headers` is complete: the adapter adds framing only."""

    provider: Provider
    method: str
    path: str
    """Behind the provider's base URL, with a leading slash: ``/chat/completions``."""
    headers: Headers = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    connect_s: float = 10.0


class UpstreamResponse(Protocol):
    """A response whose body is pulled. Closing it early closes or drains the connection, never leaks it."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Headers: ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, content-encoding undone. Raises UpstreamFailed."""

    @property
    def whole(self) -> bytes | None:
        """The whole decoded body if it is known to be there, so that `chunks` need not be asked; else None."""

    async def aclose(self) -> None:
        """Close the response and free the connection; safe to call twice and after cancellation."""


class UpstreamFailed(Exception):
    """The transport failed. `body_sent`: the upstream may have accepted (and billed) the request."""

    def __init__(self, fault: Fault, detail: str = "", *, body_sent: bool = False) -> None:
        super().__init__(detail or fault.value)
        self.fault = fault
        self.body_sent = body_sent


class Upstream(Protocol):
    """Carries requests to providers: over httpx, a pooled HTTP/1.1 client, or into an ASGI app."""

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        """Send *request* and return when the response head is there. Raises UpstreamFailed; cancel-safe."""

    async def aclose(self) -> None:
        """Close every pool."""
