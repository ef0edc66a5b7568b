"""``GET /metrics``: open to direct requests on a loopback listener, else behind the metrics or the admin token.

An embedding host listens where it likes, whatever our settings say, so the peer must be a loopback address as well.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable, Collection

from troyproxy.api.wrong_tokens import WrongTokens
from troyproxy.catalog.secret import Secret
from troyproxy.errors import InvalidAPIKey, TroyError
from troyproxy.proxy.answers import Receive, Send, send_bytes, send_error
from troyproxy.proxy.authenticator import is_loopback_name, presented_key
from troyproxy.proxy.call import Scope, raw_headers

Render = Callable[[str], tuple[bytes, str]]
"""Takes the Accept header; returns the exposition and its content type."""


class MetricsPage:
    """*open_here*: the listener is on a loopback address. *wrong* counts guesses: one of *tokens* opens far more."""

    def __init__(self, render: Render, tokens: Collection[Secret], *, open_here: bool, wrong: WrongTokens) -> None:
        self._render, self._tokens, self._open_here, self._wrong = render, tuple(tokens), open_here, wrong

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        try:
            self._check(scope)
        except TroyError as error:
            await send_error(send, error)
            return
        accept = next((value.decode("latin-1") for name, value in raw_headers(scope) if name == b"accept"), "")
        body, kind = self._render(accept)
        await send_bytes(send, 200, body, {"content-type": kind})

    def _check(self, scope: Scope) -> None:
        """Raise InvalidAPIKey, or RateLimited after too many wrong tokens."""
        if self._open_here and direct(scope):
            return
        self._wrong.check(scope)
        presented = presented_key(raw_headers(scope))
        if bearer_is(presented, self._tokens):
            return
        if presented is not None:
            self._wrong.note(scope)
        raise InvalidAPIKey("Missing or invalid metrics token.")


def direct(scope: Scope) -> bool:
    """Whether a program on this machine asks by itself: a loopback peer and name, and no trace of a proxy."""
    client = scope.get("client")
    here = client is None or _is_loopback(str(client[0]))
    host = next((value.decode("latin-1") for name, value in raw_headers(scope) if name == b"host"), "localhost")
    return here and is_loopback_name(host) and not forwarded(scope)


def forwarded(scope: Scope) -> bool:
    """Whether a proxy passed this request on."""
    names = (name for name, _ in raw_headers(scope))
    return any(name in {b"forwarded", b"via", b"x-real-ip"} or name.startswith(b"x-forwarded-") for name in names)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def bearer_is(presented: bytes | None, tokens: Collection[Secret]) -> bool:
    """Whether *presented* is one of *tokens*, compared in constant time."""
    matches = [hmac.compare_digest(presented or b"", token.reveal().encode()) for token in tokens]
    return presented is not None and any(matches)
