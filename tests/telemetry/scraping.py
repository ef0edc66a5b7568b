"""A configuration to count for, a live state that stands still, and the series of a scrape."""

from __future__ import annotations

from troyproxy.telemetry.metrics import Metrics
from troyproxy.telemetry.status import StatusFacts

MODELS = {"alpha": ("m1", "m2"), "beta": ("m1",)}


class FixedStatus:
    def __init__(self, facts: StatusFacts) -> None:
        self._facts = facts

    def facts(self) -> StatusFacts:
        return self._facts


def series(metrics: Metrics) -> set[bytes]:
    text, _ = metrics.render("")
    return {line.rpartition(b" ")[0] for line in text.split(b"\n") if line and not line.startswith(b"#")}


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value("troyproxy_" + name, labels)
