"""The daily sums: once for each request, in the transaction of its row, and bounded."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import select, text

from tests.fakes import FakeClock
from tests.store.conftest import BRISK
from tests.store.test_requests import BARE, FULL
from tests.store.waiting import until_written
from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.errors import StoreUnavailable
from troyproxy.store import migrations
from troyproxy.store.batches import inserting
from troyproxy.store.daily import OTHER, Grouping, day_of, increments
from troyproxy.store.database import Database, Doing, Work, parse_url
from troyproxy.store.store import SqlStore
from troyproxy.store.tables import USAGE_DAILY, USAGE_ROWS

pytestmark = pytest.mark.anyio

NOON = 1_800_014_400.0 - 1_800_014_400.0 % 86_400 + 43_200.0


async def sums(database: Database) -> list[dict[str, Any]]:
    order = (USAGE_DAILY.c.day, USAGE_DAILY.c.key_id, USAGE_DAILY.c.provider, USAGE_DAILY.c.model)
    async with database.read() as connection:
        return [dict(row._mapping) for row in (await connection.execute(select(USAGE_DAILY).order_by(*order))).all()]


async def record(store: SqlStore, *rows: UsageRow) -> None:
    for row in rows:
        store.usage.record(row)
    await until_written(store)


async def test_a_request_is_summed_with_all_that_is_known_of_it(store: SqlStore) -> None:
    await record(store, FULL)
    assert await sums(store._database) == [
        {
            "day": "1970-01-01",
            "key_id": "k1",
            "provider": "groq",
            "model": "llama",
            "key_name": "ci",
            "requests": 1,
            "succeeded": 1,
            "client_errors": 0,
            "failed": 0,
            "cancelled": 0,
            "attempts": 2,
            "input_tokens": 1000,
            "output_tokens": 20,
            "cached_tokens": 300,
            "reasoning_tokens": 4,
            "wasted_tokens": 11,
            "cost_usd": 0.00123,
            "duration_ms": 93.5,
        }
    ]


async def test_what_is_unknown_adds_nothing_and_what_is_none_is_empty(store: SqlStore) -> None:
    await record(store, BARE)
    [found] = await sums(store._database)
    assert (found["key_id"], found["key_name"], found["provider"], found["model"]) == ("", "", "", "")
    assert (found["requests"], found["failed"], found["input_tokens"], found["cost_usd"]) == (1, 1, 0, 0.0)


async def test_sums_grow_batch_by_batch(url: str, clock: FakeClock) -> None:
    store = SqlStore(url, secret_key=None, clock=clock, pace=replace(BRISK, batch=7))
    await store.start()
    await record(store, *(structs.replace(FULL, request_id=f"r{number}") for number in range(50)))
    [found] = await sums(store._database)
    assert (found["requests"], found["input_tokens"], found["attempts"]) == (50, 50_000, 100)
    assert found["cost_usd"] == pytest.approx(50 * 0.00123)
    await store.stop()


@pytest.mark.parametrize(
    ("outcome", "column"),
    [
        ("ok", "succeeded"),
        ("client_error", "client_errors"),
        ("upstream_error", "failed"),
        ("refused", "failed"),
        ("truncated", "failed"),
        ("cancelled", "cancelled"),
        ("something new", None),
    ],
)
def test_an_outcome_counts_in_its_column(outcome: str, column: str | None) -> None:
    [added] = increments([structs.replace(BARE, outcome=outcome)], Grouping())
    assert [name for name in ("succeeded", "client_errors", "failed", "cancelled") if added[name]] == [
        *([column] if column else [])
    ]


async def test_days_keys_and_targets_are_apart(store: SqlStore) -> None:
    await record(
        store,
        structs.replace(FULL, request_id="a", at=NOON),
        structs.replace(FULL, request_id="b", at=NOON + 86_400),
        structs.replace(FULL, request_id="c", at=NOON, key_id="k2"),
        structs.replace(FULL, request_id="d", at=NOON, model="other"),
        structs.replace(FULL, request_id="e", at=NOON, provider="beta"),
    )
    assert [found["requests"] for found in await sums(store._database)] == [1] * 5


def test_a_day_is_a_utc_day() -> None:
    assert [day_of(NOON + 43_199.9), day_of(NOON + 43_200)] == ["2027-01-15", "2027-01-16"]


async def test_a_name_that_changed_is_the_newest(store: SqlStore) -> None:
    await record(store, FULL)
    await record(store, structs.replace(FULL, request_id="r2", key_name="renamed"))
    assert [found["key_name"] for found in await sums(store._database)] == ["renamed"]


async def test_a_request_written_twice_counts_once(store: SqlStore) -> None:
    await record(store, FULL, FULL)
    await record(store, FULL, structs.replace(FULL, request_id="r2"))
    assert [found["requests"] for found in await sums(store._database)] == [2]


async def test_a_commit_whose_answer_was_lost_counts_once(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    insert, lost = store._database.insert, iter([True])

    async def insert_and_lose_the_answer(work: Work) -> None:
        await insert(work)
        if next(lost, False):
            raise StoreUnavailable("the database cannot be used at the moment")

    monkeypatch.setattr(store._database, "insert", insert_and_lose_the_answer)
    await record(store, FULL, BARE)
    assert [found["requests"] for found in await sums(store._database)] == [1, 1]
    assert next(lost, None) is None


async def test_a_row_that_is_refused_adds_nothing(store: SqlStore) -> None:
    await record(
        store, FULL, structs.replace(FULL, request_id="bad", est_tokens=2**80), structs.replace(FULL, request_id="r2")
    )
    assert [found["requests"] for found in await sums(store._database)] == [2]


async def test_rows_and_sums_are_one_transaction(store: SqlStore) -> None:
    def and_fail(connection: Doing) -> None:
        inserting({USAGE_ROWS: [FULL]}, Grouping())(connection)
        raise StoreUnavailable("killed just before the commit")

    with pytest.raises(StoreUnavailable):
        await store._database.insert(and_fail)
    assert await sums(store._database) == []
    assert await store.requests.find(FULL.request_id) is None


async def test_instances_that_add_to_the_same_sums_lose_nothing(url: str, clock: FakeClock) -> None:
    stores = [SqlStore(url, secret_key=None, clock=clock, source=name, pace=BRISK) for name in ("one", "two")]
    for store in stores:
        await store.start()
    for number in range(60):
        for name, store in zip("ab", stores, strict=True):
            row = structs.replace(FULL, request_id=f"{name}{number}", model=f"m{number % 3}", key_id=f"k{number % 2}")
            store.usage.record(row)
        await asyncio.sleep(0)
    for store in stores:
        await until_written(store)
    assert sum(found["requests"] for found in await sums(stores[0]._database)) == 120
    assert [store.dropped["usage"] for store in stores] == [0, 0]
    for store in stores:
        await store.stop()


def test_names_of_one_day_are_bounded_and_the_rest_is_other() -> None:
    grouping = Grouping(most=3)
    rows = [structs.replace(FULL, model=f"m{number}") for number in (0, 1, 2, 3, 0, 4)]
    assert {str(added["model"]): added["requests"] for added in increments(rows, grouping)} == {
        OTHER: 2,
        "m0": 2,
        "m1": 1,
        "m2": 1,
    }


def test_a_new_day_begins_with_a_new_bound_and_old_days_are_forgotten() -> None:
    grouping = Grouping(most=1)
    days = [grouping.of(structs.replace(FULL, at=NOON + day * 86_400, model=f"m{day}")) for day in range(5)]
    assert [group[3] for group in days] == ["m0", "m1", "m2", "m3", "m4"]
    assert len(grouping._seen) == 2


async def test_the_longest_names_in_any_script_fit_the_key(store: SqlStore) -> None:
    long = "\U0001f600" * 1000
    await record(store, structs.replace(FULL, key_id=long, key_name=long, provider=long, model=long))
    assert [len(found["model"]) for found in await sums(store._database)] == [200]
    assert store.dropped["usage"] == 0


# --- rows from before there were sums ---------------------------------------------------------------------------------


def attempt(provider: str) -> AttemptRecord:
    return AttemptRecord(provider, "m", "A", "rate", 429, 1.0, 2.0)


OLD = (
    FULL,
    BARE,
    structs.replace(FULL, request_id="o1", at=NOON, outcome="truncated", wasted=None, usage=None, cost_usd=None),
    structs.replace(FULL, request_id="o2", at=NOON, outcome="cancelled", attempts=(), wasted=Usage(7, 5)),
    structs.replace(FULL, request_id="o3", at=NOON + 86_400, outcome="client_error", provider=None, model=None),
    structs.replace(FULL, request_id="o4", at=NOON, attempts=tuple(map(attempt, ("a", "a", "b", "a", "c")))),
)


async def test_rows_from_before_are_summed_once_by_the_migration(
    empty_url: str, clock: FakeClock, anyio_backend: str
) -> None:
    await migrations.upgrade(empty_url)
    store = SqlStore(empty_url, secret_key=None, clock=clock, pace=BRISK)
    await store.start()
    await record(store, *OLD)
    await store.stop()
    summed, counted = await sums(store._database), await tries(store._database)
    await store.stop()
    assert counted["o4"] == (5, 3)
    await migrations.downgrade(empty_url, "0001")
    await migrations.upgrade(empty_url)
    database = Database(parse_url(empty_url))
    again, recounted = await sums(database), await tries(database)
    await database.close()
    for row in summed:
        row["cost_usd"] = pytest.approx(row["cost_usd"])
    assert (again, recounted) == (summed, counted)


async def tries(database: Database) -> dict[str, tuple[int, int]]:
    async with database.read() as connection:
        rows = await connection.execute(text("SELECT request_id, tries, failovers FROM usage_rows"))
        return {row.request_id: (row.tries, row.failovers) for row in rows}
