"""Successes that do nothing but count, held back so that an ordinary request copies no table.

A success of a closed circuit, with no lock on its provider, adds one to a slice of the circuit's window, and nobody
looks at that before something else happens. Such successes are summed up for each circuit and slice, and the sums are
added to the state (`Tallies.settled`) before anybody reads it or anything else is decided: the state is then the same
as if each had been applied at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from troyproxy.resilience import health as machine
from troyproxy.resilience.breaker import BUCKETS, CircuitState
from troyproxy.resilience.health import Health, HealthPolicy

MOST: Final = 256
"""Circuits with a sum that waits."""


@dataclass(slots=True)
class _Sum:
    """The successes of one circuit within one slice of its window. *opened_at*: attempts begun by then are stale."""

    slot: int
    last: float
    opened_at: float
    count: int = 1


class Tallies:
    """The sums of one state: whatever else changes it takes them in first."""

    def __init__(self, policy: HealthPolicy) -> None:
        self._policy = policy
        self._window_s = policy.breaker.window_s
        self._held: dict[tuple[str, str], _Sum] = {}

    def add(self, health: Health, provider: str, model: str, *, at: float, started_at: float) -> bool:
        """Hold back a success at *at*, if all it does to *health* is to count. False: apply it, after `settled`."""
        held = self._held.get((provider, model))
        if held is None:
            return self._began(health, provider, model, at, started_at)
        if int(at * BUCKETS / self._window_s) != held.slot or at < held.last or started_at <= held.opened_at:
            return False
        held.count += 1
        held.last = at
        return True

    def _began(self, health: Health, provider: str, model: str, at: float, started_at: float) -> bool:
        """Begin a sum with a first success, if it may be held back."""
        breaker = machine.breaker_of(health, provider, model)
        opened_at = -inf if breaker.opened_at is None else breaker.opened_at
        if (
            len(self._held) >= MOST
            or breaker.stored is not CircuitState.CLOSED
            or started_at <= opened_at
            or any(key.provider == provider for key in health.cooldowns)
        ):
            return False
        self._held[provider, model] = _Sum(int(at * BUCKETS / self._window_s), at, opened_at)
        return True

    def settled(self, health: Health) -> Health:
        """Return *health* with everything counted that was held back; the same object when nothing was."""
        for (provider, model), held in self._held.items():
            health = machine.tallied(health, provider, model, held.count, at=held.last, policy=self._policy)
        self._held.clear()
        return health
