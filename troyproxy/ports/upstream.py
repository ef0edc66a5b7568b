"""The way to providers: raw header pairs, requests, responses whose body is pulled, and how a transport fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

import msgspec

from troyproxy.catalog.providers import Provider
from troyproxy.resilience.faults import Fault

Headers = tuple[tuple[bytes, bytes], ...]
"""Raw header pairs with lower-case names, in order, repeats kept."""
Ear = Callable[[bytes], bool]
"""Hears a piece of a body; True: it has taken the whole of it, False: it has taken nothing. It should not raise."""


MANY: Final = 1024
"""Pieces of a body that `UpstreamResponse.read` makes one."""


class UpstreamRequest(msgspec.Struct, frozen=True):
    """One HTTP request to one provider. `headers` is complete: the adapter adds framing only."""

    provider: Provider
    method: str
    path: str
    """Behind the provider's base URL, with a leading slash: ``/chat/completions``."""
    headers: Headers
    body: bytes = b""
    connect_s: float = 10.0

    def __repr__(self) -> str:
        """Without what may be secret, or somebody's words."""
        return f"UpstreamRequest({self.method} {self.provider.id} {self.path})"


class UpstreamResponse(Protocol):
    """A response whose body is pulled. Closing it early closes or drains the connection, never leaks it."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Headers: ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, content-encoding undone. Raises UpstreamFailed."""

    async def read(self, limit: int, into: list[bytes], /) -> bool:
        """Put the body, or what is still to come of it, into *into*; False as soon as that is over *limit* bytes.

        However it ends, *into* has what came by then, in pieces; behind False `chunks` goes on. Many pieces are made
        few, since each costs more than its bytes. Raises UpstreamFailed.
        """

    @property
    def whole(self) -> bytes | None:
        """The whole decoded body if it is known to be there, so that `chunks` need not be asked; else None."""

    def listen(self, ear: Ear, /) -> None:
        """Offer to *ear* what arrives while `chunks` is waited for, from the event loop, without waking who waits.

        What it takes is not yielded. It is for adapters that can; a body that is only pulled is offered to nobody. When
        it raises, `chunks` raises EarFailed.
        """

    async def aclose(self) -> None:
        """Close the response and free the connection; safe to call twice and after cancellation."""


async def gathered(chunks: AsyncIterator[bytes], limit: int, into: list[bytes]) -> bool:
    """Do what `UpstreamResponse.read` says, for adapters whose body comes from *chunks* alone."""
    size = begun = 0
    async for chunk in chunks:
        into.append(chunk)
        size += len(chunk)
        if size > limit:
            return False
        if len(into) - begun == MANY:
            into[begun:] = [b"".join(into[begun:])]
            begun += 1
    return True


class EarFailed(RuntimeError):
    """What heard a piece of a body raised: a bug of ours, told by the event loop, and no fault of the upstream."""

    def __init__(self) -> None:
        super().__init__("what came from the upstream could not be passed on")


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
