"""What is counted here is shown as the metrics library shows what it counts itself."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from troyproxy.telemetry.counting import Mark, Number, Numbers, Spread, Spreads
from troyproxy.telemetry.declared import DECLARED, PREFIX
from troyproxy.telemetry.instruments import instruments
from troyproxy.telemetry.render import render

AMOUNTS = st.lists(st.floats(0, 200) | st.sampled_from([0.01, 0.02, 163.84, 1e-9]), max_size=30)
NAMES = st.sampled_from(["alpha", 'be"ta', "ga\\mma", "\u00e9\n"])
FORMATS = pytest.mark.parametrize("accept", ["", "application/openmetrics-text"])


def text(collector: Numbers | Spreads, accept: str) -> bytes:
    registry = CollectorRegistry()
    registry.register(collector)
    return render(registry, accept)[0]


def of_the_library(registry: CollectorRegistry, accept: str) -> bytes:
    return render(registry, accept)[0]


def new_number(_name: str, _labels: Sequence[str]) -> Number:
    return Number()


def new_spread(name: str, _labels: Sequence[str]) -> Spread:
    return Spread(DECLARED[PREFIX + name].buckets)


@FORMATS
@given(counted=st.lists(st.tuples(NAMES, NAMES, st.floats(0, 1e12))))
def test_a_counter_is_shown_as_the_library_shows_it(accept: str, counted: list[tuple[str, str, float]]) -> None:
    ours, theirs = Numbers("skips_total", new_number), CollectorRegistry()
    declared = DECLARED["troyproxy_skips_total"]
    counter = Counter("troyproxy_skips_total", declared.help, declared.labels, registry=theirs)
    for provider, reason, amount in counted:
        ours.of(provider, reason).inc(amount)
        counter.labels(provider, reason).inc(amount)
    assert text(ours, accept) == of_the_library(theirs, accept)


@FORMATS
@pytest.mark.parametrize("name", ["account_inflight", "inflight_requests"])
def test_a_gauge_is_shown_as_the_library_shows_it(accept: str, name: str) -> None:
    ours, theirs = Numbers(name, new_number), CollectorRegistry()
    declared = DECLARED[PREFIX + name]
    gauge = Gauge(PREFIX + name, declared.help, declared.labels, registry=theirs)
    labels = ("alpha", "A") if declared.labels else ()
    for number in (ours.of(*labels), gauge.labels(*labels) if labels else gauge):
        number.set(7)
        number.inc(-2)
    assert text(ours, accept) == of_the_library(theirs, accept)


@FORMATS
@given(amounts=AMOUNTS, at_once=AMOUNTS)
def test_a_histogram_is_shown_as_the_library_shows_it(accept: str, amounts: list[float], at_once: list[float]) -> None:
    ours, theirs = Spreads("inter_event_seconds", new_spread), CollectorRegistry()
    declared = DECLARED["troyproxy_inter_event_seconds"]
    histogram = Histogram(
        "troyproxy_inter_event_seconds", declared.help, declared.labels, registry=theirs, buckets=declared.buckets
    )
    for amount in amounts:
        ours.of("alpha", "m1").observe(amount)
    ours.of("alpha", "m1").observe_all(at_once)
    child = histogram.labels("alpha", "m1")
    for amount in (*amounts, *at_once):
        child.observe(amount)
    exact = math.fsum(amounts) + math.fsum(at_once)
    assert without_sum(text(ours, accept)) == without_sum(of_the_library(theirs, accept))
    assert ours.of("alpha", "m1").total == pytest.approx(exact)


def without_sum(shown: bytes) -> list[bytes]:
    """Leave out the sum: to add many at once is the more exact."""
    return [line for line in shown.split(b"\n") if b"_sum{" not in line]


def test_an_example_is_shown_as_the_library_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    accept, theirs = "application/openmetrics-text", CollectorRegistry()
    ours, declared = Spreads("overhead_seconds", new_spread), DECLARED["troyproxy_overhead_seconds"]
    histogram = Histogram("troyproxy_overhead_seconds", declared.help, registry=theirs, buckets=declared.buckets)
    monkeypatch.setattr("time.time", lambda: 1_800_000_000.5)
    for amount, request_id in ((0.0003, "r1"), (0.0004, "r2"), (9.0, "r3")):
        ours.of().observe(amount, (request_id, "t1", 1_800_000_000.5))
        histogram.observe(amount, {"request_id": request_id, "trace_id": "t1"})
    assert text(ours, accept) == of_the_library(theirs, accept)


@given(amounts=AMOUNTS)
def test_many_at_once_are_counted_as_one_by_one_examples_included(amounts: list[float]) -> None:
    together, alone = Spread((0.01, 1.0)), Spread((0.01, 1.0))
    marks: list[Mark] = [(f"r{number}", None, 0.0) for number in range(len(amounts))]
    together.observe_all(amounts, marks)
    for amount, mark in zip(amounts, marks, strict=True):
        alone.observe(amount, mark)
    assert (together.counts, together.marks) == (alone.counts, alone.marks)
    assert together.total == pytest.approx(alone.total)


@pytest.mark.parametrize(("duration_ms", "seconds"), [(1500.0, 1.5), (0.0, 0.0), (-5.0, 0.0)])
def test_a_duration_is_counted_in_seconds_and_none_is_negative(duration_ms: float, seconds: float) -> None:
    spread = Spread((1.0, 2.0))
    spread.observe_ms([duration_ms])
    assert (spread.total, sum(spread.counts)) == (seconds, 1)


def test_an_amount_on_a_bound_is_within_it() -> None:
    spread = Spread((1.0, 2.0))
    for amount in (0.0, 1.0, 1.5, 2.0, 2.1):
        spread.observe(amount)
    assert spread.counts == [2, 2, 1]


def test_whatever_is_fed_by_events_is_made_and_nothing_else() -> None:
    made = instruments(CollectorRegistry(), several=False)
    names = {PREFIX + name for kind in (made.counters, made.gauges, made.histograms) for name in kind}
    assert names == {name for name, declared in DECLARED.items() if not declared.at_scrape}
