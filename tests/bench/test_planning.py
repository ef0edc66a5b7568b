"""One short run of the planning benchmark: everything it times is there and was done."""

from __future__ import annotations

import pytest

from tests.bench.planning import SIZES, Planned, Report, desk_of, plans, table

REPORT = Report(tuple(Planned(size, 100.0 + size, 500.0) for size in SIZES), 1000.0)


@pytest.mark.parametrize("size", [1, 25])
def test_the_pool_has_as_many_candidates_as_were_asked_for(size: int) -> None:
    assert len(desk_of(size).order()) == size


def test_plans_take_time() -> None:
    assert plans(desk_of(10), 50, apart_s=1.0) > 0


def test_the_share_is_a_plan_for_fifty_over_a_request() -> None:
    assert REPORT.share == pytest.approx(0.15)


def test_the_growth_is_a_thousand_over_fifty() -> None:
    assert REPORT.growth == pytest.approx(1100 / 150)


def test_the_table_has_a_row_for_each_size() -> None:
    assert len(table(REPORT).split("\n")) == len(SIZES) + 3
