"""How long a benchmark takes: all of it, or a smoke of a minute at most that says only that everything runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Pace:
    """*seconds* is one half of a pair."""

    pairs: int = 5
    points: int = 3
    """Rounds of a concurrency of streams that only the plot shows."""
    seconds: float = 1.0
    warm_s: float = 1.0
    stream_clients: tuple[int, ...] = (1, 10, 50, 200)
    scale: int = 1000
    starts: int = 5
    several: bool = True
    """Whether several workers are measured."""
    rows: int = 1_000_000
    """Usage rows of the database's part."""
    rounds: int = 5
    """Of what is measured in this process."""


FULL: Final = Pace()
QUICK: Final = replace(FULL, pairs=1, points=1, stream_clients=(1, 50), scale=200, starts=1, rows=20_000, rounds=1)
