"""How many attempts beyond the first this process may still make: the live half of `resilience.retry_budget`."""

from __future__ import annotations

from troyproxy.ports import Clock
from troyproxy.resilience.retry_budget import RetryBudget, RetryPolicy


class Retries:
    """Counts the requests and their further attempts of this process."""

    def __init__(self, clock: Clock, policy: RetryPolicy) -> None:
        self._clock, self._policy = clock, policy
        self._budget = RetryBudget()

    @property
    def allowed(self) -> bool:
        """Whether one more attempt beyond a request's first fits."""
        return self._budget.allows(self._clock.now(), self._policy)

    def count_request(self, at: float) -> None:
        """A request that came in *at* (unix seconds) is walked."""
        self._budget.request(at)

    def count_retry(self) -> None:
        """A walk makes an attempt beyond its first."""
        self._budget.retry(self._clock.now())
