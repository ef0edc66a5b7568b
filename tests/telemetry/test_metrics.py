"""What is counted, and under which labels."""

from __future__ import annotations

import pytest

from tests.telemetry.rows import attempt, row
from tests.telemetry.scraping import MODELS, FixedStatus, series, value
from troyproxy.accounting.records import AttemptRecord
from troyproxy.accounting.usage import Usage
from troyproxy.ports import Failover, Observer
from troyproxy.telemetry.declared import DECLARED
from troyproxy.telemetry.labels import Labels
from troyproxy.telemetry.metrics import Metrics
from troyproxy.telemetry.status import StatusFacts

TARGET = {"provider": "alpha", "model": "m1"}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(Labels(lambda: MODELS, lambda: ("combo1", "auto")))


def test_it_is_an_observer(metrics: Metrics) -> None:
    observer: Observer = metrics
    assert observer is metrics


def test_a_request_is_counted_with_route_combo_stream_outcome_and_status(metrics: Metrics) -> None:
    metrics.request_finished(row())
    labels = {"route": "/v1/chat/completions", "combo": "combo1", "stream": "true", "outcome": "ok", "status": "200"}
    assert value(metrics, "requests_total", **labels) == 1


def test_a_direct_request_has_an_empty_combo(metrics: Metrics) -> None:
    metrics.request_finished(row(combo=None, stream=False, outcome="cancelled", status=499))
    labels = {"route": "/v1/chat/completions", "combo": "", "stream": "false", "outcome": "cancelled", "status": "499"}
    assert value(metrics, "requests_total", **labels) == 1


def test_what_is_counted_late_is_counted_as_if_it_had_been_at_once() -> None:
    rows = [  # their sums are exact in any order
        row(overhead_ms=250.0, first_token_ms=500.0),
        row(
            request_id="req-2",
            combo=None,
            usage=None,
            cost_usd=None,
            overhead_ms=250.0,
            first_token_ms=None,
            duration_ms=62.5,
        ),
        row(request_id="req-3", usage=Usage(0, 7), overhead_ms=None, first_token_ms=None, cost_usd=0.0),
    ]
    shown = []
    for often in (True, False):
        metrics = Metrics(Labels(lambda: MODELS, lambda: ("combo1", "auto")))
        for number in range(210):
            metrics.request_started()
            metrics.inflight_changed("alpha", "A", number)
            metrics.attempt_finished(attempt(duration_ms=15.625, outcome=("ok", "rate")[number % 2]))
            metrics.request_finished(rows[number % 3])
            if often:
                metrics.render("")
        shown.append(metrics.render("application/openmetrics-text")[0])
    assert shown[0] == shown[1]


def test_requests_in_flight_go_up_and_down(metrics: Metrics) -> None:
    metrics.request_started()
    metrics.request_started()
    metrics.request_finished(row())
    assert value(metrics, "inflight_requests") == 1


@pytest.mark.parametrize(
    ("name", "labels", "seconds"),
    [
        ("request_duration_seconds", {}, 1.5),
        ("overhead_seconds", {}, 0.0004),
        ("time_to_first_token_seconds", TARGET, 0.3),
    ],
)
def test_durations_are_in_seconds(metrics: Metrics, name: str, labels: dict[str, str], seconds: float) -> None:
    metrics.request_finished(row())
    assert value(metrics, name + "_sum", **labels) == pytest.approx(seconds)


def test_a_request_without_overhead_and_first_token_leaves_their_histograms_alone(metrics: Metrics) -> None:
    metrics.request_finished(row(overhead_ms=None, first_token_ms=None))
    assert value(metrics, "overhead_seconds_count") == 0
    assert value(metrics, "time_to_first_token_seconds_count", **TARGET) is None


def test_a_clock_that_went_back_is_no_negative_duration(metrics: Metrics) -> None:
    metrics.request_finished(row(duration_ms=-5.0))
    assert value(metrics, "request_duration_seconds_sum") == 0


@pytest.mark.parametrize(("kind", "count"), [("input", 100), ("output", 20), ("cached", 40), ("reasoning", 5)])
def test_tokens_are_split_by_kind(metrics: Metrics, kind: str, count: int) -> None:
    metrics.request_finished(row())
    assert value(metrics, "tokens_total", **TARGET, kind=kind) == count


def test_a_known_cost_is_counted(metrics: Metrics) -> None:
    metrics.request_finished(row())
    assert value(metrics, "cost_usd_total", **TARGET) == 0.25


@pytest.mark.parametrize("cost", [None, 0.0, float("nan")])
def test_an_unknown_cost_is_no_zero(metrics: Metrics, cost: float | None) -> None:
    metrics.request_finished(row(cost_usd=cost, usage=None))
    assert value(metrics, "cost_usd_total", **TARGET) is None


def wasteful() -> tuple[AttemptRecord, ...]:
    return (
        attempt(outcome="leak", usage=Usage(50, 7)),
        attempt(provider="beta", outcome="transient"),
        attempt(usage=Usage(100, 20)),
    )


def test_wasted_tokens_go_to_the_attempts_that_lost_them(metrics: Metrics) -> None:
    metrics.request_finished(row(attempts=wasteful(), wasted=Usage(50, 7)))
    assert value(metrics, "wasted_tokens_total", **TARGET, reason="leak") == 57


def test_wasted_tokens_of_no_attempt_go_to_the_outcome(metrics: Metrics) -> None:
    metrics.request_finished(row(outcome="cancelled", attempts=wasteful(), wasted=Usage(60, 7)))
    assert value(metrics, "wasted_tokens_total", **TARGET, reason="cancelled") == 10


def test_what_the_row_does_not_call_wasted_is_not_counted_as_such(metrics: Metrics) -> None:
    metrics.request_finished(row(attempts=wasteful(), wasted=None))
    assert value(metrics, "wasted_tokens_total", **TARGET, reason="leak") is None


@pytest.mark.parametrize(
    ("outcome", "ending", "error_class"),
    [
        ("ok", "ok", "none"),
        ("rate", "failed", "rate"),
        ("cancelled", "cancelled", "cancelled"),
        ("surprise", "failed", "other"),
    ],
)
def test_an_attempt_is_counted_by_outcome_and_class(
    metrics: Metrics, outcome: str, ending: str, error_class: str
) -> None:
    metrics.attempt_finished(attempt(outcome=outcome))
    assert value(metrics, "attempts_total", **TARGET, outcome=ending, **{"class": error_class}) == 1


def test_an_attempt_has_a_duration(metrics: Metrics) -> None:
    metrics.attempt_finished(attempt())
    assert value(metrics, "upstream_duration_seconds_sum") == 1.2


def test_a_failover_is_counted_from_to_and_why(metrics: Metrics) -> None:
    metrics.failed_over(Failover("combo1", "alpha", "beta", "rate"))
    labels = {"combo": "combo1", "from_provider": "alpha", "to_provider": "beta", "class": "rate"}
    assert value(metrics, "failovers_total", **labels) == 1


def test_a_skip_is_counted_with_its_reason(metrics: Metrics) -> None:
    metrics.skipped("alpha", "circuit")
    assert value(metrics, "skips_total", provider="alpha", reason="circuit") == 1


def test_a_circuit_that_changes_is_counted(metrics: Metrics) -> None:
    metrics.circuit_changed("alpha", "m1", "closed", "open")
    assert value(metrics, "circuit_transitions_total", **{"from": "closed", "to": "open"}) == 1


def test_every_change_of_a_circuit_is_0_before_it_happens(metrics: Metrics) -> None:
    labels = {"from": "closed", "to": "open"}
    before = value(metrics, "circuit_transitions_total", **labels)
    shown = {line for line in series(metrics) if line.startswith(b"troyproxy_circuit_transitions_total{")}
    assert (before, len(shown)) == (0, 5)


def test_the_requests_of_an_account_are_shown(metrics: Metrics) -> None:
    metrics.inflight_changed("alpha", "A", 3)
    assert value(metrics, "account_inflight", provider="alpha", account="A") == 3


def test_a_leak_is_counted_with_format_and_action(metrics: Metrics) -> None:
    metrics.leaked("alpha", "m1", "hermes", "suppressed")
    assert value(metrics, "tool_leaks_total", **TARGET, format="hermes", action="suppressed") == 1


def test_an_adapted_parameter_is_counted(metrics: Metrics) -> None:
    metrics.adapted("alpha", "reasoning_effort", "dropped")
    assert value(metrics, "params_adapted_total", provider="alpha", param="reasoning_effort", action="dropped") == 1


def test_gaps_between_events_are_observed(metrics: Metrics) -> None:
    metrics.events_seen("alpha", "m1", [0.5, 0.25, -1.0])
    assert value(metrics, "inter_event_seconds_sum", **TARGET) == 0.75
    assert value(metrics, "inter_event_seconds_count", **TARGET) == 3


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("circuit_state", {"provider": "alpha", "model": "m1"}, 2),
        ("circuit_state", {"provider": "other", "model": "other"}, 1),
        ("cooldown_remaining_seconds", {"provider": "alpha", "account": "A"}, 9.5),
        ("cooldown_remaining_seconds", {"provider": "alpha", "account": "B"}, 0),
        ("queue_depth", {"queue": "usage"}, 4),
        ("queue_dropped_total", {"queue": "usage"}, 2),
        ("shared_state_up", {}, 1),
        ("database_up", {}, 0),
        ("config_revision", {}, 12),
        ("config_age_seconds", {}, 33.5),
    ],
)
def test_the_live_state_is_read_at_scrape_time(
    metrics: Metrics, name: str, labels: dict[str, str], expected: float
) -> None:
    facts = StatusFacts(
        circuits=(("alpha", "m1", 2), ("gone", "x", 1), ("gone", "y", 0)),
        cooldowns=(("alpha", "A", 3.0), ("alpha", "A", 9.5), ("alpha", "B", -0.1)),
        queues={"usage": 4},
        dropped={"usage": 2},
        shared_state_up=True,
        database_up=False,
        config_revision=12,
        config_age_s=33.5,
    )
    metrics.watch(FixedStatus(facts))
    assert value(metrics, name, **labels) == expected


def test_before_there_is_a_live_state_nothing_is_said_of_it(metrics: Metrics) -> None:
    assert value(metrics, "database_up") is None


def test_the_build_is_named(metrics: Metrics) -> None:
    assert any(line.startswith(b"troyproxy_build_info{") for line in series(metrics))


def test_two_gateways_in_one_process_share_no_number(metrics: Metrics) -> None:
    other = Metrics(Labels(dict, tuple))
    metrics.request_finished(row())
    assert value(other, "request_duration_seconds_count") == 0


def test_what_is_scraped_is_what_is_declared(metrics: Metrics) -> None:
    text, _ = metrics.render("")
    shown = {tuple(line.split()[2:4]) for line in text.decode().split("\n") if line.startswith("# TYPE")}
    assert shown == {(name, declared.kind.value) for name, declared in DECLARED.items()}


@pytest.mark.parametrize("name", DECLARED)
def test_a_metric_has_base_units_and_only_counters_are_totals(name: str) -> None:
    assert name.endswith("_total") == (DECLARED[name].kind == "counter")
    assert DECLARED[name].help.endswith(".")


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("troyproxy_request_duration_seconds", 0.01, 163.84),
        ("troyproxy_upstream_duration_seconds", 0.01, 163.84),
        ("troyproxy_overhead_seconds", 0.00025, 0.25),
    ],
)
def test_the_buckets_are_those_of_the_design(name: str, first: float, last: float) -> None:
    buckets = DECLARED[name].buckets
    assert (buckets[0], buckets[-1]) == (first, last)
