"""What is asked of a large ``usage_rows`` is found by an index. (SQLite says how it would do it.)"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import ClauseElement
from sqlalchemy.dialects import sqlite

from troyproxy.accounting.pages import Position, Wanted
from troyproxy.store import migrations
from troyproxy.store.pruning import Keep, oldest, retentions
from troyproxy.store.requests import floor_below, matching, newest_since, sums_between
from troyproxy.store.statistics import cells_since, daily_groups, floor_of, timings_since

pytestmark = pytest.mark.anyio

PLACE = Position(100.0, "r")
EVERYTHING = Wanted(since=1.0, key="k", model="p/m", status=200, outcome="ok")
PRUNED = {kept.table.name: kept for kept in retentions(Keep())}


@pytest.fixture
async def database(tmp_path: Path, anyio_backend: str) -> sqlite3.Connection:
    await migrations.upgrade(f"sqlite:///{tmp_path}/troy.db")
    return sqlite3.connect(tmp_path / "troy.db")


@pytest.fixture
def opened(database: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    with closing(database):
        yield database


def plan(database: sqlite3.Connection, statement: ClauseElement) -> list[str]:
    """Return the steps of *statement*, as SQLite plans them."""
    compiled = statement.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
    return [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {compiled}")]


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(matching(Wanted(), before=PLACE, floor=None, limit=51), id="a deep page"),
        pytest.param(matching(Wanted(since=1.0), before=None, floor=None, limit=51), id="a first page since"),
        pytest.param(matching(EVERYTHING, before=PLACE, floor=50.0, limit=51), id="a filtered page"),
        pytest.param(floor_below(PLACE, 50_000), id="the floor of a page"),
        pytest.param(newest_since(1.0, 20_000), id="attempts of the last day"),
        pytest.param(sums_between(1.0, 2.0), id="what accounts served"),
        pytest.param(floor_of(1.0, 200_000), id="the floor of a window"),
        pytest.param(cells_since(1.0), id="the sums of a window"),
        pytest.param(timings_since(1.0, 10_000), id="the times of a window"),
        pytest.param(oldest(PRUNED["usage_rows"], before=1.0, limit=500), id="pruning requests"),
        pytest.param(oldest(PRUNED["state_events"], before=1.0, limit=500), id="pruning events"),
        pytest.param(oldest(PRUNED["control_events"], before=1.0, limit=500), id="pruning orders"),
        pytest.param(daily_groups("model", "2027-01-01", "2027-01-31", 20), id="daily sums"),
    ],
)
async def test_no_table_is_read_whole(opened: sqlite3.Connection, statement: ClauseElement) -> None:
    steps = plan(opened, statement)
    tables = ("usage_rows", "usage_daily", "state_events", "control_events")
    assert [step for step in steps if step.startswith(tuple(f"SCAN {table}" for table in tables))] == []
    assert [step for step in steps if ("USING" in step and "INDEX" in step) or "PRIMARY KEY" in step] != []


async def test_the_first_page_walks_the_index_and_sorts_no_table(opened: sqlite3.Connection) -> None:
    steps = plan(opened, matching(Wanted(), before=None, floor=None, limit=51))
    assert steps[0] == "SCAN usage_rows USING INDEX ix_usage_rows_at"
    assert [step for step in steps if step == "USE TEMP B-TREE FOR ORDER BY"] == []
