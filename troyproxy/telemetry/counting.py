"""Numbers that grow while requests run, and the metrics that a scrape makes of them.

The metrics library's own take a lock, check their labels and validate at every event, as several threads might count;
here one event loop does, so an event is an addition, and what it means is worked out at the scrape. What is shown is
what the library would show. The numbers that several workers add up are in ``written.py``.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final, Generic, TypeVar

from prometheus_client.core import CounterMetricFamily, Exemplar, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from troyproxy.telemetry.declared import DECLARED, PREFIX, Kind

LONGEST_TRACE: Final = 32
LONGEST_ID: Final = 64
"""OpenMetrics allows 128 characters for all labels of an exemplar."""

Labelled = tuple[str, ...]
"""The values of a metric's labels, in the order in which they are declared."""
Mark = tuple[str, str | None, float]
"""Where to look a request up: its id, its trace where it has one, and when it ended (unix seconds)."""


class Number:
    """The value of a counter or a gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        """Add *amount*."""
        self.value += amount

    def set(self, value: float) -> None:
        """Be *value* from now on."""
        self.value = value


class Spread:
    """The values of a histogram: how many are up to each of *bounds* (without infinity), and their sum."""

    __slots__ = ("bounds", "counts", "marks", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.marks: list[tuple[float, Mark] | None] = [None] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, amount: float, mark: Mark | None = None) -> None:
        """Count *amount*; *mark* becomes the example of its bucket."""
        place = bisect_left(self.bounds, amount)
        self.counts[place] += 1
        self.total += amount
        if mark is not None:
            self.marks[place] = amount, mark

    def observe_ms(self, durations_ms: Sequence[float], marks: Sequence[Mark] = ()) -> None:
        """Count durations, in seconds; by a clock that went back one is 0. *marks* as in `observe_all`."""
        self.observe_all([duration_ms / 1000 if duration_ms > 0 else 0.0 for duration_ms in durations_ms], marks)

    def observe_all(self, amounts: Sequence[float], marks: Sequence[Mark] = ()) -> None:
        """Count every one of *amounts*; each of the *marks*, one for each amount, becomes the example of its bucket."""
        self.total += math.fsum(amounts)
        if not marks:
            self._count_sorted(sorted(amounts))
            return
        bounds, counts = self.bounds, self.counts
        places = [bisect_left(bounds, amount) for amount in amounts]
        for place in places:
            counts[place] += 1
        for place, amount, mark in zip(places, amounts, marks, strict=True):
            self.marks[place] = amount, mark

    def _count_sorted(self, amounts: list[float]) -> None:
        """Count many: each bound is looked for among them, up to the last that is needed."""
        counts, counted, size = self.counts, 0, len(amounts)
        for place, bound in enumerate(self.bounds):
            if counted == size:
                return
            before, counted = counted, bisect_right(amounts, bound, counted)
            counts[place] += counted - before
        counts[-1] += size - counted


Child = TypeVar("Child")
NewNumber = Callable[[str, Labelled], Number]
NewSpread = Callable[[str, Labelled], Spread]
"""Makes what a metric (by its name without the prefix) counts under these label values."""


class Family(Generic[Child]):
    """One metric: a child for each set of label values, in the order in which they came."""

    def __init__(self, name: str, new: Callable[[str, Labelled], Child]) -> None:
        self._name, self._new, self.declared = name, new, DECLARED[PREFIX + name]
        self.children: dict[Labelled, Child] = {}
        self.catch_up: Callable[[], object] = _nothing
        """Called before anything is shown: adds what was heard and not counted yet."""
        if not self.declared.labels:
            self.of()  # of what has no labels, 0 is shown before anything happens

    def of(self, *labels: str) -> Child:
        """Return the child with these label values."""
        child = self.children.get(labels)
        if child is None:
            child = self.children[labels] = self._new(self._name, labels)
        return child


class Numbers(Family[Number]):
    """A counter or a gauge."""

    def collect(self) -> Iterator[Metric]:
        """Yield the metric."""
        self.catch_up()
        declared = self.declared
        family = CounterMetricFamily if declared.kind is Kind.COUNTER else GaugeMetricFamily
        metric = family(PREFIX + self._name, declared.help, labels=declared.labels)
        for labels, number in self.children.items():
            metric.add_metric(labels, number.value)
        yield metric


class Spreads(Family[Spread]):
    """A histogram."""

    def collect(self) -> Iterator[Metric]:
        """Yield the metric."""
        self.catch_up()
        declared = self.declared
        metric = HistogramMetricFamily(PREFIX + self._name, declared.help, labels=declared.labels)
        for labels, spread in self.children.items():
            metric.add_metric(labels, list(_buckets(spread)), spread.total)
        yield metric


def _nothing() -> None:
    """All is counted at once."""


def _buckets(spread: Spread) -> Iterator[tuple[str, float] | tuple[str, float, Exemplar]]:
    """Yield each bucket: its bound as a label, how many are up to it, and the example if there is one."""
    counts = accumulate(spread.counts)
    for bound, count, mark in zip((*spread.bounds, math.inf), counts, spread.marks, strict=True):
        label = bound_label(bound)
        yield (label, count) if mark is None else (label, count, _exemplar(*mark))


def bound_label(bound: float) -> str:
    """Return a bucket's bound as its label shows it."""
    text: str = floatToGoString(bound)  # type: ignore[no-untyped-call]  # untyped library
    return text


def _exemplar(amount: float, mark: Mark) -> Exemplar:
    request_id, trace_id, ended = mark
    trace = {} if trace_id is None else {"trace_id": trace_id[:LONGEST_TRACE]}
    return Exemplar({**trace, "request_id": request_id[:LONGEST_ID]}, amount, ended)
