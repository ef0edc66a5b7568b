"""Listening sockets, bound before anything else starts, so that a port in use is said in one line.

A server that drops a client closes its connection behind what is still to be written, which a client that never reads
holds up for ever. So the system is told to end such connections itself, where it can (Linux, RFC 5482).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from troyproxy.errors import ConfigError

Address = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
Listeners = list[socket.socket]
DEAF: Final = getattr(socket, "TCP_USER_TIMEOUT", None)
_ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 -- names them, binds nothing


@contextmanager
def listening(host: str, port: int, *, deaf_ms: int | None = None) -> Iterator[Listeners]:
    """Bind a socket to every address that *host* means; they listen once a server takes them, and are closed after.

    Raises ConfigError with the reason. *port* 0 takes any free one. A client that takes nothing of what waits for it
    for *deaf_ms* loses its connection.
    """
    with ExitStack() as stack:
        try:
            bound = [_bound(stack, *found) for found in _addresses(host, port)]
            for listener in bound:
                _drop_the_deaf(listener, deaf_ms)
        except (OSError, UnicodeError) as error:
            reason = str(error.strerror) if isinstance(error, OSError) else "this is no host name"
            hint = "choose another with --host or --port (TROY_HOST, TROY_PORT)"
            raise ConfigError(f"cannot listen on {host}:{port}: {reason.lower()}; {hint}") from None
        yield bound


def _addresses(host: str, port: int) -> Sequence[tuple[socket.AddressFamily, Address]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = list(dict.fromkeys((family, address) for family, _, _, _, address in found))
    # A name may mean several addresses; with port 0 each would get a number of its own.
    return addresses if port else addresses[:1]


def _bound(stack: ExitStack, family: socket.AddressFamily, address: Address) -> socket.socket:
    listener = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family is socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.setblocking(False)
    listener.bind(address)
    return listener


def _drop_the_deaf(listener: socket.socket, after_ms: int | None) -> None:
    """Set what every connection that *listener* accepts inherits."""
    if DEAF is not None and after_ms is not None:
        listener.setsockopt(socket.IPPROTO_TCP, DEAF, after_ms)


def url_of(host: str, listeners: Listeners) -> str:
    """Return the URL at which this machine reaches the server."""
    port = listeners[0].getsockname()[1]
    name = _ANYWHERE.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a listener on *host*."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
