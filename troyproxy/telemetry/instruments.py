"""The declared metrics that events feed, made and registered; and what the finished requests of one kind add to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    """What the requests add to that have all their labels in common. A child is made when something is added to it."""

    __slots__ = ("_cost", "_duration", "_made", "_overhead", "_requests", "_target", "_tokens", "_waits")

    def __init__(self, made: Instruments, request: tuple[str, ...], target: tuple[str, str]) -> None:
        self._made, self._target = made, target
        self._requests = made.counters["requests_total"].of(*request)
        self._duration = made.histograms["request_duration_seconds"].of()
        self._overhead = made.histograms["overhead_seconds"].of()
        self._waits: Spread | None = None
        self._cost: Number | None = None
        self._tokens: list[Number | None] = [None] * len(TOKENS)

    def add(self, row: UsageRow) -> None:
        """Add *row*."""
        self._requests.inc()
        duration_ms = row.duration_ms
        mark = row.request_id, row.trace_id, row.at + duration_ms / 1000
        self._duration.observe_ms(duration_ms, mark)
        if row.overhead_ms is not None:
            self._overhead.observe_ms(row.overhead_ms)
        if row.first_token_ms is not None:
            self._wait(row.first_token_ms, mark)
        if row.usage is not None:
            self._used(row.usage)
        if row.cost_usd is not None and row.cost_usd > 0:
            self._paid(row.cost_usd)

    def _wait(self, wait_ms: float, mark: Mark) -> None:
        if self._waits is None:
            self._waits = self._made.histograms["time_to_first_token_seconds"].of(*self._target)
        self._waits.observe_ms(wait_ms, mark)

    def _used(self, usage: Usage) -> None:
        """Count the kinds of tokens that are not zero."""
        into, out, cached, reasoning = self._tokens
        if usage.input > 0:
            (into or self._kind(0)).inc(usage.input)
        if usage.output > 0:
            (out or self._kind(1)).inc(usage.output)
        if usage.cached > 0:
            (cached or self._kind(2)).inc(usage.cached)
        if usage.reasoning > 0:
            (reasoning or self._kind(3)).inc(usage.reasoning)

    def _kind(self, place: int) -> Number:
        tokens = self._tokens[place] = self._made.counters["tokens_total"].of(*self._target, TOKENS[place])
        return tokens

    def _paid(self, usd: float) -> None:
        if self._cost is None:
            self._cost = self._made.counters["cost_usd_total"].of(*self._target)
        self._cost.inc(usd)
