"""What a scrape brings: formats, exemplars, and names that become known or stay unknown."""

from __future__ import annotations

import pytest

from tests.telemetry.rows import attempt, row
from tests.telemetry.scraping import MODELS, value
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.telemetry.labels import Labels
from troyproxy.telemetry.metrics import MOST_BOUND, MOST_LATE, Metrics


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(Labels(lambda: MODELS, lambda: ("combo1", "auto")))


def test_plain_text_is_the_default(metrics: Metrics) -> None:
    assert metrics.render("*/*")[1] == "text/plain; version=0.0.4; charset=utf-8"


def test_openmetrics_carries_the_request_as_an_exemplar(metrics: Metrics) -> None:
    metrics.request_finished(row(request_id="r" * 300))
    text, content_type = metrics.render("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert b'# {request_id="' + b"r" * 64 + b'"} 1.5' in text
    assert text.endswith(b"# EOF\n")


@pytest.mark.parametrize("sample", [b"request_duration_seconds_bucket", b"time_to_first_token_seconds_bucket"])
def test_a_request_with_a_trace_names_it_where_its_time_is_counted(metrics: Metrics, sample: bytes) -> None:
    metrics.request_finished(row(trace_id="0af7651916cd43dd8448eb211c80319c"))
    lines = metrics.render("application/openmetrics-text")[0].split(b"\n")
    marked = [line for line in lines if line.startswith(b"troyproxy_" + sample) and b" # {" in line]
    assert len(marked) == 1
    assert b'# {request_id="req-1",trace_id="0af7651916cd43dd8448eb211c80319c"}' in marked[0]


def test_what_ended_since_the_last_scrape_is_in_the_next_one(metrics: Metrics) -> None:
    for _ in range(MOST_LATE + 3):
        metrics.request_started()
        metrics.request_finished(row())
        metrics.attempt_finished(attempt())
    assert value(metrics, "inflight_requests") == 0
    assert value(metrics, "request_duration_seconds_count") == MOST_LATE + 3
    assert value(metrics, "upstream_duration_seconds_count") == MOST_LATE + 3


def test_plain_text_has_no_exemplars(metrics: Metrics) -> None:
    metrics.request_finished(row(trace_id="0af7651916cd43dd8448eb211c80319c"))
    assert b"req-1" not in metrics.render("text/plain")[0]


def test_a_name_that_becomes_known_is_shown_from_the_reload_on() -> None:
    models = {"alpha": ("m1",)}
    metrics = Metrics(Labels(lambda: models, tuple))
    later = attempt(provider="beta")
    metrics.attempt_finished(later)
    models["beta"] = ("m1",)
    metrics.configured(Snapshot(), Snapshot())
    metrics.attempt_finished(later)
    ok = {"outcome": "ok", "class": "none"}
    assert value(metrics, "attempts_total", provider="other", model="other", **ok) == 1
    assert value(metrics, "attempts_total", provider="beta", model="m1", **ok) == 1


def test_names_that_clients_invent_are_not_all_remembered(metrics: Metrics) -> None:
    for n in range(MOST_BOUND + 10):
        metrics.attempt_finished(attempt(model=f"invented-{n}"))
    assert len(metrics._attempts) == 10
    assert value(metrics, "attempts_total", provider="alpha", model="other", outcome="ok", **{"class": "none"}) == (
        MOST_BOUND + 10
    )
