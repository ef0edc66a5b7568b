"""What the auto engine does, as metrics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from troyproxy.ports import AutoPlan
from troyproxy.telemetry.declared import DECLARED
from troyproxy.telemetry.labels import Labels
from troyproxy.telemetry.metrics import Metrics

MODELS = {"alpha": ("m1", "m2")}
PLAN = AutoPlan(name="auto", provider="alpha", model="m1", score=0.63)
TARGET = {"provider": "alpha", "model": "m1"}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(Labels(lambda: MODELS, lambda: ("mine", "auto", "auto/fast")))


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"troyproxy_auto_{name}", labels)


def test_every_metric_of_the_engine_is_declared() -> None:
    declared = {name.removeprefix("troyproxy_") for name in DECLARED if name.startswith("troyproxy_auto_")}
    assert declared == {
        "auto_score",
        "auto_picks_total",
        "auto_explorations_total",
        "auto_exclusions_total",
        "auto_incident",
    }


def test_a_plan_is_a_score_and_a_pick(metrics: Metrics) -> None:
    for score in (0.63, 0.21):
        metrics.auto_planned(replace(PLAN, score=score))
    assert value(metrics, "picks_total", combo="auto", **TARGET) == 2
    assert value(metrics, "score_count", combo="auto") == 2
    assert value(metrics, "score_sum", combo="auto") == pytest.approx(0.84)


def test_an_explored_plan_is_counted_as_such(metrics: Metrics) -> None:
    for explored in (True, False, True):
        metrics.auto_planned(replace(PLAN, explored=explored))
    assert value(metrics, "explorations_total", combo="auto") == 2


def test_an_incident_is_on_until_a_plan_without_one(metrics: Metrics) -> None:
    seen = []
    for incident in (True, False):
        metrics.auto_planned(replace(PLAN, incident=incident))
        seen.append(value(metrics, "incident", combo="auto"))
    assert seen == [1.0, 0.0]


def test_each_auto_id_and_each_combo_has_its_own_series(metrics: Metrics) -> None:
    for name in ("auto", "auto/fast", "mine"):
        metrics.auto_planned(replace(PLAN, name=name))
    assert [value(metrics, "picks_total", combo=name, **TARGET) for name in ("auto", "auto/fast", "mine")] == [1, 1, 1]


@pytest.mark.parametrize("reason", ["score", "failures", "probe"])
def test_an_exclusion_is_counted_with_its_reason(metrics: Metrics, reason: str) -> None:
    metrics.auto_excluded("alpha", "m1", reason)
    assert value(metrics, "exclusions_total", reason=reason, **TARGET) == 1


def test_what_nobody_configured_makes_no_series_of_its_own(metrics: Metrics) -> None:
    before = metrics.render("")[0].count(b"\n")
    for at in range(100):
        metrics.auto_planned(replace(PLAN, name=f"gone-{at}", provider=f"p{at}", model=f"m{at}"))
        metrics.auto_excluded(f"p{at}", f"m{at}", f"r{at}")
    text = metrics.render("")[0]
    assert b"gone-" not in text
    assert b'"r7"' not in text
    assert text.count(b"\n") < before + 60
