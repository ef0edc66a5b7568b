"""Several workers that count into one folder. Here they take turns in one process; `tests/e2e` has real ones."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import values
from prometheus_client.parser import text_string_to_metric_families

from tests.fakes import FakeClock, settle
from tests.telemetry.rows import attempt, row
from troyproxy.telemetry.labels import Labels
from troyproxy.telemetry.metrics import Metrics
from troyproxy.telemetry.status import StatusFacts
from troyproxy.telemetry.workers import FOLDER, REFRESH_S, join, mark_dead, render_all

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
ALL = {"alpha": ("m1",)}


class Told:
    """A live state that the test sets."""

    def __init__(self) -> None:
        self.now = StatusFacts(config_revision=7)

    def facts(self) -> StatusFacts:
        return self.now


class Floor:
    """Where workers come and go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, name: str) -> tuple[Metrics, Told]:
        """Start a worker; only the last one that started may make new label sets."""
        join(self.folder, name)
        metrics, told = Metrics(Labels(lambda: ALL, lambda: ("combo1",)), folder=self.folder), Told()
        metrics.watch(told)
        return metrics, told


@pytest.fixture
def floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Floor]:
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    monkeypatch.setenv(FOLDER, "")
    yield Floor(tmp_path)
    values.close_all_multiprocess_files()  # type: ignore[no-untyped-call]


def samples(text: bytes) -> Samples:
    families = text_string_to_metric_families(text.decode())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def value(floor: Floor, name: str, **labels: str) -> float | None:
    found = samples(render_all(floor.folder, "")[0])
    return found.get((f"troyproxy_{name}", tuple(sorted(labels.items()))))


def test_counters_of_all_workers_are_added(floor: Floor) -> None:
    for name, requests in (("worker-1", 2), ("worker-2", 3)):
        metrics, _ = floor.start(name)
        for _ in range(requests):
            metrics.attempt_finished(attempt())
    assert value(floor, "attempts_total", provider="alpha", model="m1", outcome="ok", **{"class": "none"}) == 5


def test_every_worker_answers_a_scrape_with_the_same_text(floor: Floor) -> None:
    first, _ = floor.start("worker-1")
    first.request_finished(row())
    second, _ = floor.start("worker-2")
    second.request_finished(row())
    assert first.render("") == second.render("") == first.render("")


def test_openmetrics_can_be_had_and_has_no_exemplars(floor: Floor) -> None:
    metrics, _ = floor.start("worker-1")
    metrics.request_finished(row(request_id="r" * 20))
    text, kind = metrics.render("application/openmetrics-text")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")
    assert b"rrrr" not in text


def test_metrics_come_in_the_order_of_the_documentation(floor: Floor) -> None:
    metrics, _ = floor.start("worker-1")
    metrics.request_finished(row())
    metrics.attempt_finished(attempt())
    names = [line.split()[2] for line in metrics.render("")[0].decode().split("\n") if line.startswith("# TYPE")]
    assert names[:2] == ["troyproxy_requests_total", "troyproxy_attempts_total"]
    assert names[-1] == "troyproxy_build_info"


def test_a_worker_that_takes_a_dead_ones_place_counts_on(floor: Floor) -> None:
    for _ in range(3):
        metrics, _ = floor.start("worker-1")
        metrics.skipped("alpha", "circuit")
        mark_dead(floor.folder, "worker-1")
    assert value(floor, "skips_total", provider="alpha", reason="circuit") == 3
    assert len(list(floor.folder.glob("counter_*.db"))) == 1


def test_the_durations_of_all_workers_are_added_and_survive_them(floor: Floor) -> None:
    for name in ("worker-1", "worker-2", "worker-1"):
        metrics, _ = floor.start(name)
        metrics.attempt_finished(attempt(duration_ms=15.0))
        metrics.events_seen("alpha", "m1", [0.5, 0.25, 0.5])
        mark_dead(floor.folder, name)
    assert value(floor, "upstream_duration_seconds_bucket", le="0.01") == 0
    assert value(floor, "upstream_duration_seconds_bucket", le="0.02") == 3
    assert value(floor, "upstream_duration_seconds_sum") == pytest.approx(0.045)
    assert value(floor, "inter_event_seconds_count", provider="alpha", model="m1") == 9
    assert value(floor, "inter_event_seconds_sum", provider="alpha", model="m1") == 3.75


def test_the_gauges_of_a_dead_worker_are_gone_and_its_counters_stay(floor: Floor) -> None:
    for name in ("worker-1", "worker-10"):
        metrics, _ = floor.start(name)
        metrics.request_started()
        metrics.skipped("alpha", "circuit")
    mark_dead(floor.folder, "worker-1")
    assert value(floor, "inflight_requests") == 1
    assert value(floor, "skips_total", provider="alpha", reason="circuit") == 2


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("circuit_state", {"provider": "alpha", "model": "m1"}, 2),
        ("cooldown_remaining_seconds", {"provider": "alpha", "account": "A"}, 9),
        ("queue_depth", {"queue": "usage"}, 5),
        ("queue_dropped_total", {"queue": "usage"}, 3),
        ("database_up", {}, 0),
        ("shared_state_up", {}, 0),
        ("config_revision", {}, 6),
        ("config_age_seconds", {}, 40),
    ],
)
def test_the_live_state_of_all_is_the_sum_or_the_worst(
    floor: Floor, name: str, labels: dict[str, str], expected: float
) -> None:
    bad = StatusFacts(
        circuits=(("alpha", "m1", 2),),
        cooldowns=(("alpha", "A", 9.0),),
        queues={"usage": 4},
        dropped={"usage": 2},
        shared_state_up=False,
        database_up=False,
        config_revision=6,
        config_age_s=40.0,
    )
    good = StatusFacts(
        circuits=(("alpha", "m1", 0),),
        queues={"usage": 1},
        dropped={"usage": 1},
        shared_state_up=True,
        config_revision=7,
        config_age_s=1.0,
    )
    for worker, facts in (("worker-1", bad), ("worker-2", good)):
        metrics, told = floor.start(worker)
        told.now = facts
        metrics.refresh()
    assert value(floor, name, **labels) == expected


def test_a_worker_that_has_said_nothing_yet_is_no_worker_without_a_database(floor: Floor) -> None:
    first, _ = floor.start("worker-1")
    first.refresh()
    floor.start("worker-2")
    assert (value(floor, "database_up"), value(floor, "shared_state_up")) == (1, None)


def test_the_build_is_one_however_many_workers(floor: Floor) -> None:
    floor.start("worker-1")
    floor.start("worker-2")
    found = samples(render_all(floor.folder, "")[0])
    assert [value for (name, _), value in found.items() if name == "troyproxy_build_info"] == [1]


def test_what_is_gone_from_the_live_state_is_0(floor: Floor) -> None:
    metrics, told = floor.start("worker-1")
    told.now = StatusFacts(circuits=(("alpha", "m1", 2),), cooldowns=(("alpha", "A", 9.0),))
    metrics.refresh()
    told.now = StatusFacts()
    metrics.refresh()
    assert value(floor, "circuit_state", provider="alpha", model="m1") == 0
    assert value(floor, "cooldown_remaining_seconds", provider="alpha", account="A") == 0


def test_dropped_rows_are_counted_once(floor: Floor) -> None:
    metrics, told = floor.start("worker-1")
    for dropped in (2, 2, 5):
        told.now = replace(told.now, dropped={"usage": dropped})
        metrics.refresh()
    assert value(floor, "queue_dropped_total", queue="usage") == 5


def test_before_there_is_a_live_state_nothing_is_written(floor: Floor) -> None:
    join(floor.folder, "worker-1")
    metrics = Metrics(Labels(dict, tuple), folder=floor.folder)
    assert b"database_up" not in metrics.render("")[0]


@pytest.mark.anyio
async def test_the_live_state_is_written_for_the_scrapes_of_others(floor: Floor) -> None:
    clock = FakeClock(manual=True)
    metrics, told = floor.start("worker-1")
    task = asyncio.get_running_loop().create_task(metrics.keep_fresh(clock))
    await settle()
    seen = [value(floor, "config_revision")]
    told.now = StatusFacts(config_revision=8)
    await clock.advance(REFRESH_S)
    seen.append(value(floor, "config_revision"))
    task.cancel()
    assert seen == [7, 8]


@pytest.mark.anyio
async def test_a_process_that_is_alone_has_nothing_to_write() -> None:
    clock = FakeClock()
    await Metrics(Labels(dict, tuple)).keep_fresh(clock)
    assert clock.slept == []


def test_joining_is_for_this_process_and_its_children(floor: Floor) -> None:
    floor.start("worker-1")
    assert os.environ[FOLDER] == str(floor.folder)
