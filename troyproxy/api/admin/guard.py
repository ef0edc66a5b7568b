"""Who may use the admin API: the bearer of the admin token. Ten wrong guesses a minute shut a peer out."""

from __future__ import annotations

from typing import Final

from cachetools import TTLCache

from troyproxy.api.metrics import bearer_is
from troyproxy.catalog.secret import Secret
from troyproxy.errors import InvalidAPIKey, RateLimited
from troyproxy.ports import Clock
from troyproxy.proxy.authenticator import presented_key
from troyproxy.proxy.call import Scope, raw_headers

WRONG_TOKENS: Final = 10
WINDOW_S: Final = 60.0
PEERS: Final = 10_000
"""Peers whose wrong tokens are remembered; beyond it the oldest are forgotten."""


class AdminGuard:
    """Knows the token and who guessed wrong lately. A client key never opens anything here."""

    def __init__(self, token: Secret, clock: Clock) -> None:
        self._token, self._clock = token, clock
        self._wrong: TTLCache[str, tuple[float, ...]] = TTLCache(PEERS, WINDOW_S, timer=clock.monotonic)

    def check(self, scope: Scope) -> None:
        """Raise InvalidAPIKey, or RateLimited (right token or not) after ten wrong ones within a minute."""
        now, peer = self._clock.monotonic(), _peer(scope)
        wrong = tuple(at for at in self._wrong.get(peer, ()) if at > now - WINDOW_S)
        if len(wrong) >= WRONG_TOKENS:
            wait_s = wrong[0] + WINDOW_S - now
            raise RateLimited("too many wrong admin tokens from this address", retry_after_s=wait_s)
        presented = presented_key(tuple(pair for pair in raw_headers(scope) if pair[0] == b"authorization"))
        if bearer_is(presented, (self._token,)):
            return
        if presented is not None:
            self._wrong[peer] = (*wrong, now)
        raise InvalidAPIKey("Missing or invalid admin token.")


def _peer(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""
