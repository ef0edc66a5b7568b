"""What is not counted but asked for at each scrape: circuits, cooldowns, queues, database, configuration.

The facts come from whoever owns them, through `StatusSource`; here they only become samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from troyproxy.telemetry.declared import DECLARED, PREFIX, Kind
from troyproxy.telemetry.labels import Labels

CLOSED: Final = 0
HALF_OPEN: Final = 1
OPEN: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFacts:
    """The state of the gateway at one moment."""

    circuits: tuple[tuple[str, str, int], ...] = ()
    """(provider, model, `CLOSED`, `HALF_OPEN` or `OPEN`)."""
    cooldowns: tuple[tuple[str, str, float], ...] = ()
    """(provider, account name, seconds left); one per model is fine, the longest counts."""
    queues: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Entries lost so far, per queue; never falls."""
    shared_state_up: bool | None = None
    """None: there is no shared state to be up."""
    database_up: bool = True
    config_revision: int = 0
    config_age_s: float = 0.0
    refusals: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(key name, limit) → requests refused so far; never falls."""
    budgets: tuple[tuple[str, str, float], ...] = ()
    """(key name, window, share of the budget that is left)."""


class StatusSource(Protocol):
    """Knows the state. Called at each scrape: must be quick, must not wait and must not raise."""

    def facts(self) -> StatusFacts:
        """Return the state now."""
        ...


class StatusCollector:
    """Makes samples of the facts of *source*; before there is one, the metrics are named and have no samples."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self.source: StatusSource | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield every metric that is declared as read at scrape time."""
        samples = samples_of(self.source.facts(), self._labels) if self.source is not None else {}
        for name, declared in DECLARED.items():
            if declared.at_scrape:
                family = CounterMetricFamily if declared.kind is Kind.COUNTER else GaugeMetricFamily
                metric = family(name, declared.help, labels=declared.labels)
                for values, value in samples.get(name.removeprefix(PREFIX), {}).items():
                    metric.add_metric(values, value)
                yield metric


def samples_of(facts: StatusFacts, labels: Labels) -> dict[str, dict[tuple[str, ...], float]]:
    """Return metric (without the prefix) → label values → value."""
    return {
        "circuit_state": _worst((labels.target(p, m), float(state)) for p, m, state in facts.circuits),
        "cooldown_remaining_seconds": _worst(
            (labels.account(p, account), max(0.0, left)) for p, account, left in facts.cooldowns
        ),
        "queue_depth": {(labels.word("queue", name),): float(n) for name, n in facts.queues.items()},
        "queue_dropped_total": {(labels.word("queue", name),): float(n) for name, n in facts.dropped.items()},
        "rate_limited_total": _summed(
            ((labels.key(key), limit), float(n)) for (key, limit), n in facts.refusals.items()
        ),
        "budget_remaining_ratio": _lowest(((labels.key(key), window), left) for key, window, left in facts.budgets),
        "shared_state_up": {} if facts.shared_state_up is None else {(): float(facts.shared_state_up)},
        "database_up": {(): float(facts.database_up)},
        "config_revision": {(): float(facts.config_revision)},
        "config_age_seconds": {(): facts.config_age_s},
    }


def _worst(samples: Iterable[tuple[tuple[str, ...], float]]) -> dict[tuple[str, ...], float]:
    worst: dict[tuple[str, ...], float] = {}
    for key, value in samples:
        worst[key] = max(value, worst.get(key, value))
    return worst


def _lowest(samples: Iterable[tuple[tuple[str, ...], float]]) -> dict[tuple[str, ...], float]:
    return {key: -value for key, value in _worst((key, -value) for key, value in samples).items()}


def _summed(samples: Iterable[tuple[tuple[str, ...], float]]) -> dict[tuple[str, ...], float]:
    sums: dict[tuple[str, ...], float] = {}
    for key, value in samples:
        sums[key] = sums.get(key, 0.0) + value
    return sums
