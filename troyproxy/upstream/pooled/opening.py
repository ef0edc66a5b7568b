"""Makes connections: name, TCP to whichever address answers first (RFC 8305), TLS with verification.

Foreign exceptions end here: a failure is one `Fault`, and its detail names a class and a system error, never an
address. Whether a request was sent before is not known here.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from aiohappyeyeballs import start_connection

from troyproxy.ports import UpstreamFailed
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.pooled.address import Origin
from troyproxy.upstream.pooled.connection import Connection

NEXT_ADDRESS_S: Final = 0.25
"""How long one address is tried alone (RFC 8305, section 5)."""
FAREWELL_S: Final = 1.0
"""How long a TLS peer is given to say goodbye."""


class Trust:
    """TLS contexts by CA file; the system's one is made once, since loading the roots takes 20 ms."""

    def __init__(self) -> None:
        self._usual: ssl.SSLContext | None = None

    def context(self, scheme: str, ca_file: str | None) -> ssl.SSLContext | None:
        """Return what verifies the peer, None without TLS. Raises UpstreamFailed (TLS) when *ca_file* is unreadable."""
        if ca_file is not None:
            try:
                context = _offering(ssl.create_default_context(cafile=ca_file))
            except OSError as exc:
                raise UpstreamFailed(Fault.TLS, f"ca_file cannot be read: {exc.strerror}") from exc
            return context if scheme == "https" else None
        if scheme != "https":
            return None
        if self._usual is None:
            import certifi  # noqa: PLC0415 -- not where every upstream is local

            self._usual = _offering(ssl.create_default_context(cafile=certifi.where()))
        return self._usual


def _offering(context: ssl.SSLContext) -> ssl.SSLContext:
    context.set_alpn_protocols(["http/1.1"])
    return context


async def opened(origin: Origin, trust: ssl.SSLContext | None, make: Callable[[], Connection]) -> Connection:
    """Return a new connection to *origin*. Raises UpstreamFailed (CONNECT, TLS); it has no clock."""
    try:
        return await _open(origin, trust, make)
    except ssl.SSLError as exc:
        raise UpstreamFailed(Fault.TLS, f"{type(exc).__name__}: {exc.reason or 'no reason given'}") from exc
    except (OSError, UnicodeError, RuntimeError) as exc:  # a name that IDNA refuses; uvloop, when a socket is gone
        raise UpstreamFailed(Fault.CONNECT, _detail(exc)) from exc


async def _open(origin: Origin, trust: ssl.SSLContext | None, make: Callable[[], Connection]) -> Connection:
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    connected = await start_connection(addresses, happy_eyeballs_delay=NEXT_ADDRESS_S, interleave=1, loop=loop)
    with ExitStack() as until_owned:
        until_owned.callback(connected.close)
        if trust is None:
            _, connection = await loop.create_connection(make, sock=connected)
        else:
            _, connection = await loop.create_connection(
                make, sock=connected, ssl=trust, server_hostname=origin.host, ssl_shutdown_timeout=FAREWELL_S
            )
        until_owned.pop_all()
    return connection


def _detail(exc: BaseException) -> str:
    if isinstance(exc, OSError) and exc.errno is not None and exc.errno > 0:  # `strerror` may hold the address
        return f"{type(exc).__name__}: {os.strerror(exc.errno)}"
    return type(exc).__name__
