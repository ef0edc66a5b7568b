"""Sums that the database makes, on both databases."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.store.test_daily import NOON
from tests.store.test_requests import BARE, FULL
from tests.store.waiting import until_written
from troyproxy.accounting.records import UsageRow
from troyproxy.accounting.statistics import Cell, Group, Leaks, Timing
from troyproxy.accounting.usage import Usage
from troyproxy.ports import DailySum
from troyproxy.store.statistics import SqlStatistics
from troyproxy.store.store import SqlStore

pytestmark = pytest.mark.anyio


async def record(store: SqlStore, *rows: UsageRow) -> None:
    for row in rows:
        store.usage.record(row)
    await until_written(store)


async def test_a_window_sums_by_group_what_is_in_it(store: SqlStore) -> None:
    await record(
        store,
        replace(FULL, request_id="old", at=99.0),
        replace(FULL, request_id="a", at=100.0),
        replace(FULL, request_id="b", at=101.0, cost_usd=None),
        replace(BARE, at=102.0),
    )
    window = await store.statistics.window(100.0)
    served = Group("groq", "llama", "k1", "daily", "ok")
    assert (window.since, window.complete) == (100.0, True)
    assert sorted(window.cells, key=lambda cell: cell.requests) == [
        Cell(Group(None, None, None, None, "refused"), None, 1, 0, 0, None, None, None, None, None),
        Cell(served, "ci", 2, 4, 2, 2000, 40, 600, 8, 0.00123),
    ]
    assert window.timings == [
        Timing(Group(None, None, None, None, "refused"), 0.0, None),
        Timing(served, 93.5, 40.0),
        Timing(served, 93.5, 40.0),
    ]


async def test_a_window_counts_leaks_by_the_attempts_that_made_them(store: SqlStore) -> None:
    first, second = FULL.attempts[0], replace(FULL.attempts[0], provider="beta", model="b")
    left, made = replace(first, leak="F03;failed_over"), replace(second, leak="F01;repaired")
    await record(
        store,
        replace(FULL, request_id="old", at=1.0, attempts=(left,)),
        replace(FULL, request_id="a", at=100.0, attempts=(left, made)),
        replace(FULL, request_id="b", at=101.0, attempts=(left, second)),
        replace(FULL, request_id="c", at=102.0),
    )
    assert (await store.statistics.window(50.0)).leaks == [
        Leaks(first.provider, first.model, "F03", "failed_over", 2),
        Leaks("beta", "b", "F01", "repaired", 1),
    ]
    row = await store.requests.find("a")
    assert row is not None
    assert [attempt.leak for attempt in row.attempts] == ["F03;failed_over", "F01;repaired"]


async def test_sums_of_integers_are_integers(store: SqlStore) -> None:
    await record(store, FULL)
    [cell] = (await store.statistics.window(0.0)).cells
    assert {type(value) for value in cell[2:9]} == {int}


@pytest.mark.parametrize("tokens", [10_000, 20_000, 10**8, 10**12])
async def test_round_sums_are_integers_too(store: SqlStore, tokens: int) -> None:
    await record(store, replace(FULL, usage=Usage(input=tokens, output=tokens)))
    [cell] = (await store.statistics.window(0.0)).cells
    assert (cell.input_tokens, cell.output_tokens) == (tokens, tokens)


async def test_too_many_rows_make_the_window_shorter_and_it_says_so(store: SqlStore) -> None:
    await record(store, *(replace(FULL, request_id=f"r{number}", at=100.0 + number) for number in range(10)))
    window = await SqlStatistics(store._database, most_rows=4, most_timed=2).window(0.0)
    assert (window.since, window.complete) == (105.0, False)
    assert ([cell.requests for cell in window.cells], len(window.timings)) == ([5], 2)


async def test_an_empty_window_is_empty(store: SqlStore) -> None:
    window = await store.statistics.window(0.0)
    assert (window.cells, window.timings, window.complete) == ([], [], True)


async def test_days_are_summed_over_all_groups_oldest_first(store: SqlStore) -> None:
    await record(
        store,
        replace(FULL, request_id="a", at=NOON + 86_400),
        replace(FULL, request_id="b", at=NOON),
        replace(FULL, request_id="c", at=NOON, key_id="k2", outcome="truncated"),
        replace(FULL, request_id="d", at=NOON - 86_400),
    )
    first, second = await store.statistics.daily("2027-01-15", "2027-01-16")
    assert first == DailySum(
        day="2027-01-15",
        requests=2,
        succeeded=1,
        failed=1,
        attempts=4,
        input_tokens=2000,
        output_tokens=40,
        cached_tokens=600,
        reasoning_tokens=8,
        wasted_tokens=22,
        cost_usd=0.00123 + 0.00123,
        duration_ms=187.0,
    )
    assert (second.day, second.requests) == ("2027-01-16", 1)


@pytest.mark.parametrize(
    ("group_by", "found"),
    [
        ("provider", [(None, None, 1), ("beta", "beta", 1), ("groq", "groq", 2)]),
        ("model", [(None, None, 1), ("beta/llama", "beta/llama", 1), ("groq/llama", "groq/llama", 2)]),
        ("key", [(None, None, 1), ("k1", "ci", 2), ("k2", "laptop", 1)]),
    ],
)
async def test_days_are_told_apart_by_a_group(
    store: SqlStore, group_by: str, found: list[tuple[str | None, str | None, int]]
) -> None:
    await record(
        store,
        replace(FULL, request_id="a", at=NOON),
        replace(FULL, request_id="b", at=NOON, key_id="k2", key_name="laptop"),
        replace(FULL, request_id="c", at=NOON, provider="beta"),
        replace(BARE, at=NOON),
    )
    days = await store.statistics.daily_by(group_by, "2027-01-15", "2027-01-15")
    assert [(each.group, each.name, each.requests) for each in days] == found


async def test_only_the_largest_groups_are_told_apart(store: SqlStore) -> None:
    for number in range(5):
        await record(store, *(replace(FULL, request_id=f"{number}-{n}", provider=f"p{number}") for n in range(number)))
    days = await SqlStatistics(store._database, most_groups=2).daily_by("provider", "1970-01-01", "1970-01-02")
    assert [(each.group, each.requests) for each in days] == [("p3", 3), ("p4", 4)]
