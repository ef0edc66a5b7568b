"""Every metric of the gateway as one table. What counts them is in ``counting.py``, what feeds them in ``metrics.py``.

The table is what the documentation and the dashboards are checked against: a metric that is not here does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge

PREFIX: Final = "troyproxy_"
Several = Literal["livesum", "livemax", "livemin"]
"""What a gauge of several workers is: the sum over those that live, or the highest or the lowest among them."""
SUM: Final = "livesum"
HIGHEST: Final = "livemax"
LOWEST: Final = "livemin"
DURATIONS: Final = tuple(0.01 * 2**n for n in range(15))
"""10 ms to 163.84 s, each twice the one before."""
OVERHEADS: Final = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25)
SCORES: Final = tuple(at / 10 for at in range(1, 11))
GAPS: Final = tuple(0.001 * 2**n for n in range(17))
"""1 ms to 65.536 s, just beyond the default idle limit of a stream."""


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Declared:
    """One metric. *at_scrape*: its value is asked for when it is scraped, not kept."""

    kind: Kind
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()
    at_scrape: bool = False
    several: Several = SUM


def _counter(text: str, *labels: str, at_scrape: bool = False) -> Declared:
    return Declared(Kind.COUNTER, labels, text, at_scrape=at_scrape)


def _gauge(text: str, *labels: str, at_scrape: bool = False, several: Several = SUM) -> Declared:
    return Declared(Kind.GAUGE, labels, text, at_scrape=at_scrape, several=several)


def _histogram(text: str, *labels: str, buckets: tuple[float, ...]) -> Declared:
    return Declared(Kind.HISTOGRAM, labels, text, buckets)


_TABLE: Final[Mapping[str, Declared]] = {
    "requests_total": _counter(
        "Finished client requests. The combo is empty for a direct request.",
        *("route", "combo", "stream", "outcome", "status"),
    ),
    "attempts_total": _counter(
        "Upstream attempts: outcome ok, failed or cancelled, and the error class (none for ok).",
        *("provider", "model", "outcome", "class"),
    ),
    "failovers_total": _counter(
        "Walks that left one provider for another.", "combo", "from_provider", "to_provider", "class"
    ),
    "skips_total": _counter("Members passed over without a call.", "provider", "reason"),
    "request_duration_seconds": _histogram("From a request's arrival to its last byte.", buckets=DURATIONS),
    "upstream_duration_seconds": _histogram("One upstream attempt, to its end.", buckets=DURATIONS),
    "overhead_seconds": _histogram("Time spent in the gateway before the commit.", buckets=OVERHEADS),
    "time_to_first_token_seconds": _histogram(
        "From a request's arrival to the first output.", "provider", "model", buckets=DURATIONS
    ),
    "inter_event_seconds": _histogram("Gaps between the events of a stream.", "provider", "model", buckets=GAPS),
    "circuit_state": _gauge("0 closed, 1 half-open, 2 open.", "provider", "model", at_scrape=True, several=HIGHEST),
    "circuit_transitions_total": _counter("State changes of circuits.", "from", "to"),
    "cooldown_remaining_seconds": _gauge(
        "The longest lock of an account over its models; 0 without one.",
        *("provider", "account"),
        at_scrape=True,
        several=HIGHEST,
    ),
    "account_inflight": _gauge("Requests that an account carries now.", "provider", "account"),
    "inflight_requests": _gauge("Client requests being served now."),
    "queue_depth": _gauge("Entries that wait for the database writer.", "queue", at_scrape=True),
    "queue_dropped_total": _counter("Entries lost at a queue's bound.", "queue", at_scrape=True),
    "tokens_total": _counter(
        "Tokens of the answers that clients got. Cached is part of input, reasoning is part of output.",
        *("provider", "model", "kind"),
    ),
    "cost_usd_total": _counter("Cost of the answers that clients got, where prices are known.", "provider", "model"),
    "wasted_tokens_total": _counter(
        "Tokens that upstreams reported and no client received.", "provider", "model", "reason"
    ),
    "tool_leaks_total": _counter("Tool calls that came as text.", "provider", "model", "format", "action"),
    "params_adapted_total": _counter("Request parameters changed for a provider.", "provider", "param", "action"),
    "auto_score": _histogram("Score of the candidate that leads a plan of the auto engine.", "combo", buckets=SCORES),
    "auto_picks_total": _counter("Candidates that led a plan of the auto engine.", "combo", "provider", "model"),
    "auto_explorations_total": _counter("Plans that put another candidate than the best first.", "combo"),
    "auto_exclusions_total": _counter(
        "Candidates left out for a while: for their score, their failures, or a bad probe.",
        *("provider", "model", "reason"),
    ),
    "auto_incident": _gauge("1 while most providers of the pool are down.", "combo", several=HIGHEST),
    "rate_limited_total": _counter(
        "Requests that a client key's own limit refused: requests, tokens, day or month.",
        *("key", "limit"),
        at_scrape=True,
    ),
    "budget_remaining_ratio": _gauge(
        "Share of a client key's budget that is left, of keys that were used.",
        *("key", "window"),
        at_scrape=True,
        several=LOWEST,
    ),
    "shared_state_up": _gauge(
        "Whether the Redis that instances share their state through can be used; absent without one.",
        at_scrape=True,
        several=LOWEST,
    ),
    "database_up": _gauge("Whether the last database operation succeeded.", at_scrape=True, several=LOWEST),
    "config_revision": _gauge("Revision of the configuration in use.", at_scrape=True, several=LOWEST),
    "config_age_seconds": _gauge(
        "Time since the configuration in use was last found to be the newest.", at_scrape=True, several=HIGHEST
    ),
    "build_info": _gauge("Always 1; the labels say what runs.", "version", "python", several=HIGHEST),
}

DECLARED: Final[Mapping[str, Declared]] = MappingProxyType({PREFIX + name: row for name, row in _TABLE.items()})
"""Full name → what it is, in the order of the documentation."""


def counter(name: str, registry: CollectorRegistry) -> Counter:
    """Return the counter that is declared as *name*, without the prefix."""
    row = _TABLE[name]
    return Counter(PREFIX + name, row.help, row.labels, registry=registry)


def gauge(name: str, registry: CollectorRegistry) -> Gauge:
    """Return the gauge that is declared as *name*, without the prefix."""
    row = _TABLE[name]
    return Gauge(PREFIX + name, row.help, row.labels, registry=registry, multiprocess_mode=row.several)
