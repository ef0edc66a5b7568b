"""Who guessed at an operator's token lately. Ten wrong guesses a minute shut a peer out, wherever it guessed.

The admin token opens the admin API and the metrics; both ask here, or the one would be a way round the other. It knows
no token.
"""

from __future__ import annotations

from typing import Final

from cachetools import TTLCache

from troyproxy.errors import RateLimited
from troyproxy.ports import Clock
from troyproxy.proxy.call import Scope

WRONG_TOKENS: Final = 10
WINDOW_S: Final = 60.0
PEERS: Final = 10_000
"""Peers whose wrong tokens are remembered; beyond it the oldest are forgotten."""


class WrongTokens:
    """The guesses of the last minute, by peer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wrong: TTLCache[str, tuple[float, ...]] = TTLCache(PEERS, WINDOW_S, timer=clock.monotonic)

    def __len__(self) -> int:
        return len(self._wrong)

    def check(self, scope: Scope) -> None:
        """Raise RateLimited, whatever the peer presents now, after ten wrong tokens within a minute."""
        wrong = self._of(scope)
        if len(wrong) >= WRONG_TOKENS:
            wait_s = wrong[0] + WINDOW_S - self._clock.monotonic()
            raise RateLimited("too many wrong admin tokens from this address", retry_after_s=wait_s)

    def note(self, scope: Scope) -> None:
        """Remember a wrong token."""
        self._wrong[_peer(scope)] = (*self._of(scope), self._clock.monotonic())

    def _of(self, scope: Scope) -> tuple[float, ...]:
        begin = self._clock.monotonic() - WINDOW_S
        return tuple(at for at in self._wrong.get(_peer(scope), ()) if at > begin)


def _peer(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""
