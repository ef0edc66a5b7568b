"""How often a model writes its tool calls as text: the rolling leak rate of each provider and model.

A model that drifts is no outage: nobody is cooled and no circuit opens. It is only asked last for tool turns. Counted
are finished tool turns, so a rate falls with good turns and does not depend on time. Bounded; it forgets on restart.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection
from typing import Final

TURNS: Final = 20
"""Tool turns that a rate looks back on."""
DRIFTING: Final = 3
"""Leaks among them from which on a model drifts."""
MODELS: Final = 2_000
"""Pairs of provider and model that are remembered; those that were not seen for longest are forgotten first."""


class LeakRates:
    """The rates of one process."""

    def __init__(self, *, turns: int = TURNS, threshold: int = DRIFTING, bound: int = MODELS) -> None:
        self._turns, self._threshold, self._bound = turns, threshold, bound
        self._seen: OrderedDict[tuple[str, str], deque[bool]] = OrderedDict()
        self._late: set[tuple[str, str]] = set()

    def note(self, provider: str, model: str, *, leaked: bool) -> None:
        """A tool turn of *model* has ended."""
        key = (provider, model)
        turns = self._seen.get(key)
        if turns is None:
            turns = self._seen[key] = deque(maxlen=self._turns)
        turns.append(leaked)
        self._seen.move_to_end(key)
        (self._late.add if sum(turns) >= self._threshold else self._late.discard)(key)
        if len(self._seen) > self._bound:
            forgotten, _ = self._seen.popitem(last=False)
            self._late.discard(forgotten)

    def leaks(self, provider: str, model: str) -> tuple[int, int]:
        """Return how many of the last turns leaked, and how many turns there were."""
        turns = self._seen.get((provider, model), ())
        return sum(turns), len(turns)

    def drifting(self, provider: str, model: str) -> bool:
        """Whether *model* leaks so often that tool turns should prefer others."""
        return (provider, model) in self._late

    def late(self) -> Collection[tuple[str, str]]:
        """Return who drifts now, as provider and model: mostly nobody, so a plan need not ask for each candidate."""
        return self._late

    def clear(self) -> None:
        """Forget everything."""
        self._seen.clear()
        self._late.clear()

    def __len__(self) -> int:
        """Return how many pairs are remembered."""
        return len(self._seen)
