"""Parameters that a provider's model has just rejected, remembered for an hour so that they are not sent again."""

from __future__ import annotations

from typing import Final

from troyproxy.ports import Clock

REMEMBER_S: Final = 3600.0
BOUND: Final = 4096
NOTHING: Final[frozenset[str]] = frozenset()


class LearnedParameters:
    """(provider, model) → rejected parameters; bounded, forgotten by age."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, str], tuple[frozenset[str], float]] = {}
        """With the moment from which it is forgotten, the earliest first."""

    def of(self, provider: str, model: str) -> frozenset[str]:
        """Return what this model rejected within the last hour."""
        if not self._seen:  # as almost always: not even the time is asked for
            return NOTHING
        seen, until = self._seen.get((provider, model), (NOTHING, 0.0))
        return seen if self._clock.now() < until else NOTHING

    def learn(self, provider: str, model: str, parameter: str) -> None:
        """Remember a rejected *parameter*."""
        known, now = self.of(provider, model), self._clock.now()
        self._seen.pop((provider, model), None)
        while self._seen and (len(self._seen) >= BOUND or now >= next(iter(self._seen.values()))[1]):
            del self._seen[next(iter(self._seen))]
        self._seen[provider, model] = known | {parameter}, now + REMEMBER_S
