"""What is counted of the summary of a hand-off."""

from __future__ import annotations

from tests.telemetry.rows import attempt, row
from troyproxy.accounting.usage import Usage
from troyproxy.telemetry.labels import Labels
from troyproxy.telemetry.metrics import Metrics


def test_the_tokens_of_a_summary_have_a_reason_of_their_own() -> None:
    metrics = Metrics(Labels(lambda: {"alpha": ("m1",), "beta": ("m1",)}, tuple))
    asked = attempt(provider="beta", usage=Usage(30, 5), handoff=True)
    metrics.request_finished(row(attempts=(asked, attempt(usage=Usage(100, 20))), wasted=Usage(30, 5)))
    labels = {"provider": "beta", "model": "m1", "reason": "handoff"}
    assert metrics.registry.get_sample_value("troyproxy_wasted_tokens_total", labels) == 35
