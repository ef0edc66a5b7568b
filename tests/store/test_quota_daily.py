"""What the upstream of each account answered, by the day: attempts, not requests, and only what surely counts."""

from __future__ import annotations

import pytest

from tests.fakes import FakeClock
from tests.store.conftest import BRISK
from tests.store.waiting import until_written
from tests.telemetry.rows import attempt, row
from troyproxy.accounting.quota_board import DayUse
from troyproxy.accounting.records import UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.store.quota_daily import quota_increments
from troyproxy.store.store import SqlStore

pytestmark = pytest.mark.anyio

NOON = 1_796_040_000.0
DAY = "2026-11-30"


def asked(request_id: str, *attempts: object, route: str = "/v1/chat/completions") -> UsageRow:
    return row(request_id=request_id, at=NOON, route=route, attempts=attempts)


def tried(provider: str = "alpha", account: str = "a", status: int | None = 200, **more: object) -> object:
    return attempt(provider=provider, account=account, status=status, started_at=NOON, **{"usage": None, **more})


async def record(store: SqlStore, *rows: UsageRow) -> None:
    for each in rows:
        store.usage.record(each)
    await until_written(store)


async def test_a_429_that_was_failed_over_counts_for_the_account_that_was_asked(store: SqlStore) -> None:
    await record(store, asked("r1", tried(status=429, outcome="rate"), tried("beta", "b", usage=Usage(10, 5))))
    assert await store.sums.used_on(DAY) == [
        DayUse("alpha", "a", rate_limited=1),
        DayUse("beta", "b", requests=1, tokens=15, told=1),
    ]


async def test_sums_grow_and_the_same_row_counts_once(store: SqlStore) -> None:
    await record(store, asked("r1", tried()), asked("r2", tried()))
    await record(store, asked("r2", tried()), asked("r3", tried()))
    assert await store.sums.used_on(DAY) == [DayUse("alpha", "a", requests=3)]


async def test_they_are_there_after_a_restart(url: str, clock: FakeClock) -> None:
    for request_id in ("r1", "r2"):
        store = SqlStore(url, secret_key=None, clock=clock, pace=BRISK)
        await store.start()
        await record(store, asked(request_id, tried()))
        await store.stop()
    again = SqlStore(url, secret_key=None, clock=clock, pace=BRISK)
    await again.start()
    assert await again.sums.used_on(DAY) == [DayUse("alpha", "a", requests=2)]
    await again.stop()


async def test_another_day_has_sums_of_its_own(store: SqlStore) -> None:
    late = attempt(provider="alpha", account="a", started_at=NOON + 86_400, usage=None)
    await record(store, asked("r1", tried(), late))
    assert await store.sums.used_on(DAY) == [DayUse("alpha", "a", requests=1)]
    assert await store.sums.used_on("2026-11-29") == []


def added(*rows: UsageRow) -> list[dict[str, object]]:
    return quota_increments(rows)


def test_embeddings_share_the_key_and_count_twice_over() -> None:
    [found] = added(asked("r1", tried()), asked("r2", tried(), route="/v1/embeddings"))
    assert (found["requests"], found["embeddings"]) == (2, 1)


@pytest.mark.parametrize("status", [None, 400, 401, 500, 503])
def test_what_no_vendor_surely_counts_adds_nothing(status: int | None) -> None:
    assert added(asked("r1", tried(status=status))) == []


def test_estimated_tokens_are_no_lower_bound() -> None:
    [found] = added(asked("r1", tried(usage=Usage(10, 5, estimated=True))))
    assert (found["requests"], found["tokens"], found["told"]) == (1, 0, 0)


def test_groups_come_in_one_order_everywhere() -> None:
    found = added(asked("r1", tried("beta"), tried("alpha", "b"), tried("alpha", "a")))
    assert [(each["provider"], each["account"]) for each in found] == [("alpha", "a"), ("alpha", "b"), ("beta", "a")]
