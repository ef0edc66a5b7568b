"""What the figures should be, and whether they are. A figure that was not measured is missed by nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench.figures import OURS, Figures, JsonRow, Started, ratio


@dataclass(frozen=True, slots=True)
class Goal:
    """*measured* must be at most *most*; None: it was not measured, or cannot be here."""

    what: str
    most: float
    measured: float | None
    unit: str = ""

    @property
    def met(self) -> bool | None:
        return None if self.measured is None else self.measured <= self.most

    def as_json(self) -> dict[str, object]:
        """Return it for `json.dumps`."""
        return {"what": self.what, "most": self.most, "measured": self.measured, "unit": self.unit, "met": self.met}


def goals(figures: Figures) -> list[Goal]:
    """Return every goal with what was measured."""
    return [*_of_json(figures), *_of_streams(figures), *_of_scale(figures), *_of_start(figures)]


def _of_json(figures: Figures) -> Iterator[Goal]:
    small, large, alone = (_json(figures, *case) for case in (("1 KB", 32), ("100 KB", 32), ("1 KB", 1)))
    yield Goal("JSON, 32 clients: CPU of a request, over the route's", 0.40, small.ratio if small else None)
    yield Goal("100 KB bodies, 32 clients: the same", 0.60, large.ratio if large else None)
    added = ratio(alone.added_p50_ms, alone.route_added_p50_ms) if alone is not None else None
    yield Goal("one client: added p50, over the route's", 0.60, added)


def _of_streams(figures: Figures) -> Iterator[Goal]:
    row = next((row for row in figures.streams if row.case == "live" and row.clients == 200), None)
    yield Goal("200 live streams: CPU of an event, over the route's", 0.70, row.ratio if row else None)


def _of_scale(figures: Figures) -> Iterator[Goal]:
    ours = next((row for row in figures.scale if row.server == OURS), None)
    name = f"{ours.streams:,} streams" if ours else "1,000 streams"
    yield Goal(f"{name}: not whole", 0, ours.streams - ours.whole if ours else None)
    yield Goal(f"{name}: memory of each", 60, ours.kb_each if ours else None, "KB")
    yield Goal(f"{name}: p99 of an event's delay, over its p50", 3, ours.fairness if ours else None)
    yield Goal(f"{name}: p99 of the gap between events, over its p50", 3, ours.gap_spread if ours else None)


def _of_start(figures: Figures) -> Iterator[Goal]:
    first, later = (_start(figures, what) for what in ("first start", "later start"))
    yield Goal("first start, until it answers", 1.0, first.ready_s if first else None, "s")
    yield Goal("later start, until it answers", 1.0, later.ready_s if later else None, "s")
    yield Goal("idle memory", 90, later.memory_mb if later else None, "MB")


def _json(figures: Figures, case: str, clients: int) -> JsonRow | None:
    return next((row for row in figures.json if (row.case, row.clients) == (case, clients)), None)


def _start(figures: Figures, what: str) -> Started | None:
    return next((row for row in figures.starts if row.what == what), None)


def missed(found: list[Goal]) -> list[Goal]:
    """Return those that were measured and not met."""
    return [goal for goal in found if goal.met is False]
