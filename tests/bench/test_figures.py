"""The benchmark's arithmetic: medians, ratios, targets, and the tables they are shown in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.bench.figures import DIRECT, OURS, ROUTE, Figures, JsonRow, Scale, Started, json_row, stream_row
from tests.bench.loads import Load, read_wrk
from tests.bench.streams import Streamed
from tests.bench.tables import tables
from tests.bench.targets import goals, missed


def _load(cpu_us: float | None, p50_ms: float = 1.0) -> Load:
    return Load(100, 1.0, p50_ms, 2 * p50_ms, None if cpu_us is None else cpu_us * 100 / 1e6)


def _row(case: str, clients: int, *rounds: tuple[float | None, float | None]) -> JsonRow:
    return json_row(case, clients, [{OURS: _load(ours), ROUTE: _load(route)} for ours, route in rounds])


def test_the_ratio_is_the_median_of_the_rounds() -> None:
    assert _row("1 KB", 32, (100, 200), (90, 100), (100, 1000)).ratio == pytest.approx(0.5)


def test_processor_time_that_is_not_known_is_a_dash() -> None:
    figures = Figures({}, [_row("1 KB", 32, (None, None))])
    assert next(table.rows[0][2:6] for table in tables(figures)) == ["-", "-", "-", "-"]


def test_the_added_time_is_taken_round_by_round() -> None:
    rounds = [{DIRECT: _load(1, at), OURS: _load(1, at + 2), ROUTE: _load(1, at + 4)} for at in (1.0, 500.0, 3.0)]
    row = json_row("1 KB", 1, rounds)
    assert (row.added_p50_ms, row.route_added_p50_ms) == (2, 4)


def test_an_event_costs_its_share_of_the_run() -> None:
    run = Streamed(events=1000, cpu_s=0.05)
    assert stream_row("live", 200, 20, [{OURS: run}]).gateway_us == pytest.approx(50)


SCALE = Scale(OURS, 1000, 999, 1, 50.0, 1.0, 2.0, 1.1, 40.0)


def test_targets_say_what_was_met_and_what_was_missed() -> None:
    figures = Figures({}, [_row("1 KB", 32, (30, 100)), _row("100 KB", 32, (90, 100))], scale=[SCALE])
    figures.starts = [Started("first start", 0.9, 1.5, 80.0), Started("later start", 0.8, 0.9, 80.0)]
    assert [goal.what for goal in missed(goals(figures))] == [
        "100 KB bodies, 32 clients: the same",
        "1,000 streams: not whole",
        "first start, until it answers",
    ]


def test_a_target_that_was_not_measured_is_neither_met_nor_missed() -> None:
    assert {goal.met for goal in goals(Figures({}))} == {None}


def test_every_part_that_was_measured_has_a_table() -> None:
    planning = {"rows": [{"candidates": 1, "plan_us": 2.0, "anew_us": 3.0}], "share": 0.1, "growth": 2.0}
    figures = Figures({}, scale=[SCALE, replace(SCALE, server=ROUTE)], planning=planning)
    assert [table.title.split()[0] for table in tables(figures)] == ["Targets", "Many", "A"]
    assert all(len({len(line) for line in (table.head, *table.rows)}) == 1 for table in tables(figures))


OUTPUT = (
    'Running 1s test\n{"requests": 500, "us": 2000000, "p50_us": 1500, "p99_us": 9000, "refused": %d, "broken": %d}\n'
)


def test_what_wrk_wrote_is_read() -> None:
    assert read_wrk(OUTPUT % (0, 0))(1.0) == Load(500, 2.0, 1.5, 9.0, 1.0)


@pytest.mark.parametrize("failed", [(1, 0), (0, 1)])
def test_a_load_with_a_failure_is_none(failed: tuple[int, int]) -> None:
    with pytest.raises(RuntimeError):
        read_wrk(OUTPUT % failed)
