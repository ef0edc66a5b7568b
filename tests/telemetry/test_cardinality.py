"""The number of series does not grow with what clients invent, nor without bound with what is configured."""

from __future__ import annotations

import pytest

from tests.telemetry.rows import attempt, row
from tests.telemetry.scraping import MODELS, FixedStatus, series
from troyproxy.accounting.usage import Usage
from troyproxy.ports import AutoPlan, Failover
from troyproxy.telemetry.labels import MAX_ACCOUNTS, MAX_KEYS, Labels
from troyproxy.telemetry.metrics import Metrics
from troyproxy.telemetry.status import StatusFacts

BOUNDS = {
    "cooldown_remaining_seconds": MAX_ACCOUNTS + 1,
    "rate_limited_total": MAX_KEYS + 1,
    "budget_remaining_ratio": MAX_KEYS + 1,
}
"""Metric → series at most: what is beyond the bound is one more, ``other``."""


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(Labels(lambda: MODELS, lambda: ("combo1", "auto")))


def everything(metrics: Metrics, name: str) -> None:
    """Send one of everything with *name* wherever a client, or an upstream's answer, could put it."""
    metrics.request_started()
    invented = {"route": "/" + name, "combo": name, "provider": name, "model": name, "outcome": name, "status": 9999}
    metrics.request_finished(row(request_id=name, requested_model=name, wasted=Usage(5, 5), **invented))
    metrics.request_finished(row(requested_model=name, model=name, attempts=(attempt(model=name, outcome=name),)))
    metrics.attempt_finished(attempt(model=name, outcome=name, reason=name))
    metrics.failed_over(Failover(name, name, name, name))
    metrics.skipped(name, name)
    metrics.leaked("alpha", "m1", name, name)
    metrics.events_seen(name, name, [0.1])
    metrics.adapted("alpha", name, "dropped")
    metrics.circuit_changed(name, name, "closed", "open")
    metrics.inflight_changed(name, name, 1)
    metrics.auto_planned(AutoPlan(name, name, name, 0.5, explored=True, incident=True))
    metrics.auto_excluded(name, name, name)


def live(names: list[str]) -> StatusFacts:
    """Return a live state in which circuits and locks are of invented targets."""
    circuits = tuple((name, name, 2) for name in names) + tuple(("alpha", name, 2) for name in names)
    return StatusFacts(circuits=circuits, cooldowns=tuple((name, name, 1.0) for name in names))


def test_ten_thousand_invented_names_make_no_series(metrics: Metrics) -> None:
    for n in range(100):
        everything(metrics, f"warm{n}")
    metrics.watch(FixedStatus(live(["warm"])))
    before = series(metrics)
    names = [f"invented-{n}-" + "x" * (n % 300) for n in range(10_000)]
    for name in names:
        everything(metrics, name)
    metrics.watch(FixedStatus(live(names)))
    assert series(metrics) == before


def test_ten_thousand_keys_and_accounts_are_at_most_so_many_series(metrics: Metrics) -> None:
    names = [f"name-{n}" for n in range(10_000)]
    facts = StatusFacts(
        cooldowns=tuple(("alpha", name, 1.0) for name in names),
        refusals={(name, "requests"): 1 for name in names},
        budgets=tuple((name, "day", 0.5) for name in names),
    )
    metrics.watch(FixedStatus(facts))
    shown = series(metrics)
    count = {name: sum(line.startswith(f"troyproxy_{name}{{".encode()) for line in shown) for name in BOUNDS}
    assert count == BOUNDS


def test_an_invented_name_is_nowhere_in_the_scrape(metrics: Metrics) -> None:
    for n in range(100):
        metrics.request_finished(row(route=f"/v1/secret{n}", combo=f"secret{n}", model=f"secret{n}"))
    assert b"secret" not in metrics.render("")[0]
