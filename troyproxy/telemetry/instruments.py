"""The declared metrics that events feed, made and registered; and what the finished requests of one kind add to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry

from troyproxy.accounting.records import UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.telemetry.counting import Mark, NewNumber, NewSpread, Number, Numbers, Spread, Spreads
from troyproxy.telemetry.declared import DECLARED, PREFIX, Kind
from troyproxy.telemetry.written import WrittenNumber, WrittenSpread

TOKENS: Final = ("input", "output", "cached", "reasoning")
"""The kinds of tokens."""


@dataclass(frozen=True, slots=True)
class Instruments:
    """The metrics that events feed, by their names without the prefix."""

    counters: Mapping[str, Numbers]
    gauges: Mapping[str, Numbers]
    histograms: Mapping[str, Spreads]

    def tell_before_showing(self, catch_up: Callable[[], object]) -> None:
        """Call *catch_up* before a metric is shown."""
        for numbers in (*self.counters.values(), *self.gauges.values()):
            numbers.catch_up = catch_up
        for spreads in self.histograms.values():
            spreads.catch_up = catch_up


def instruments(registry: CollectorRegistry, *, several: bool) -> Instruments:
    """Return them; *several* workers count, of which this process is one."""
    number: NewNumber = WrittenNumber if several else lambda _name, _labels: Number()
    spread: NewSpread = WrittenSpread if several else lambda name, _labels: Spread(DECLARED[PREFIX + name].buckets)
    fed = {name.removeprefix(PREFIX): row.kind for name, row in DECLARED.items() if not row.at_scrape}
    made = Instruments(
        {name: Numbers(name, number) for name, kind in fed.items() if kind is Kind.COUNTER},
        {name: Numbers(name, number) for name, kind in fed.items() if kind is Kind.GAUGE},
        {name: Spreads(name, spread) for name, kind in fed.items() if kind is Kind.HISTOGRAM},
    )
    for numbers in (*made.counters.values(), *made.gauges.values()):
        registry.register(numbers)
    for spreads in made.histograms.values():
        registry.register(spreads)
    return made


class Tally:
    """What the requests add to that have all their labels in common. A child is made when something is added to it.

    Rows wait until they are counted together: that costs a fraction, as code and numbers are at hand then.
    """

    __slots__ = ("_cost", "_duration", "_made", "_overhead", "_requests", "_target", "_tokens", "_waits", "waiting")

    def __init__(self, made: Instruments, request: tuple[str, ...], target: tuple[str, str]) -> None:
        self._made, self._target = made, target
        self._requests = made.counters["requests_total"].of(*request)
        self._duration = made.histograms["request_duration_seconds"].of()
        self._overhead = made.histograms["overhead_seconds"].of()
        self._waits: Spread | None = None
        self._cost: Number | None = None
        self._tokens: list[Number | None] = [None] * len(TOKENS)
        self.waiting: list[UsageRow] = []

    def count(self) -> None:
        """Count the rows that wait."""
        rows, self.waiting = self.waiting, []
        self._requests.inc(len(rows))
        marks = [(row.request_id, row.trace_id, row.at + row.duration_ms / 1000) for row in rows]
        self._duration.observe_ms([row.duration_ms for row in rows], marks)
        self._overhead.observe_ms([row.overhead_ms for row in rows if row.overhead_ms is not None])
        self._waited([row.first_token_ms for row in rows], marks)
        self._used([row.usage for row in rows if row.usage is not None])
        self._paid(sum([row.cost_usd for row in rows if row.cost_usd is not None and row.cost_usd > 0]))

    def _waited(self, waits_ms: Sequence[float | None], marks: Sequence[Mark]) -> None:
        known = [(wait_ms, mark) for wait_ms, mark in zip(waits_ms, marks, strict=True) if wait_ms is not None]
        if known:
            if self._waits is None:
                self._waits = self._made.histograms["time_to_first_token_seconds"].of(*self._target)
            self._waits.observe_ms([wait_ms for wait_ms, _ in known], [mark for _, mark in known])

    def _used(self, usages: Sequence[Usage]) -> None:
        """Count the kinds of tokens that are not zero."""
        self._add(0, sum([usage.input for usage in usages]))
        self._add(1, sum([usage.output for usage in usages]))
        self._add(2, sum([usage.cached for usage in usages]))
        self._add(3, sum([usage.reasoning for usage in usages]))

    def _add(self, kind: int, tokens: int) -> None:
        if tokens > 0:
            number = self._tokens[kind]
            if number is None:
                number = self._tokens[kind] = self._made.counters["tokens_total"].of(*self._target, TOKENS[kind])
            number.inc(tokens)

    def _paid(self, usd: float) -> None:
        if usd > 0:
            if self._cost is None:
                self._cost = self._made.counters["cost_usd_total"].of(*self._target)
            self._cost.inc(usd)


class Endings:
    """What the attempts add to that have all their labels in common. They wait as the rows of a `Tally` do."""

    __slots__ = ("_attempts", "_upstream", "waiting")

    def __init__(self, made: Instruments, attempt: tuple[str, ...]) -> None:
        self._attempts = made.counters["attempts_total"].of(*attempt)
        self._upstream = made.histograms["upstream_duration_seconds"].of()
        self.waiting: list[float] = []
        """How long each took, in milliseconds."""

    def count(self) -> None:
        """Count the attempts that wait."""
        durations_ms, self.waiting = self.waiting, []
        self._attempts.inc(len(durations_ms))
        self._upstream.observe_ms(durations_ms)
