"""Parameters that a provider's model has just rejected, remembered for an hour so that they are not sent again."""

from __future__ import annotations

from typing import Final

from cachetools import TTLCache

from troyproxy.ports import Clock

REMEMBER_S: Final = 3600.0
BOUND: Final = 4096


class LearnedParameters:
    """(provider, model) → rejected parameters; bounded, forgotten by age."""

    def __init__(self, clock: Clock) -> None:
        self._seen: TTLCache[tuple[str, str], frozenset[str]] = TTLCache(BOUND, REMEMBER_S, timer=clock.now)

    def of(self, provider: str, model: str) -> frozenset[str]:
        """Return what this model rejected within the last hour."""
        return self._seen.get((provider, model), frozenset())

    def learn(self, provider: str, model: str, parameter: str) -> None:
        """Remember a rejected *parameter*."""
        self._seen[provider, model] = self.of(provider, model) | {parameter}
