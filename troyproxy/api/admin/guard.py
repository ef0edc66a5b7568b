"""Who may use the admin API: the bearer of the admin token. Ten wrong guesses a minute shut a peer out."""

from __future__ import annotations

from troyproxy.api.metrics import bearer_is
from troyproxy.api.wrong_tokens import WrongTokens
from troyproxy.catalog.secret import Secret
from troyproxy.errors import InvalidAPIKey
from troyproxy.proxy.authenticator import presented_key
from troyproxy.proxy.call import Scope, raw_headers


class AdminGuard:
    """Knows the token. A client key never opens anything here."""

    def __init__(self, token: Secret, wrong: WrongTokens) -> None:
        self._token, self._wrong = token, wrong

    def check(self, scope: Scope) -> None:
        """Raise InvalidAPIKey, or RateLimited (right token or not) after ten wrong ones within a minute."""
        self._wrong.check(scope)
        presented = presented_key(tuple(pair for pair in raw_headers(scope) if pair[0] == b"authorization"))
        if bearer_is(presented, (self._token,)):
            return
        if presented is not None:
            self._wrong.note(scope)
        raise InvalidAPIKey("Missing or invalid admin token.")
