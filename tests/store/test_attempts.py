"""Stored attempts, read back for whoever measures."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.store.test_requests import BARE, FULL
from tests.store.waiting import until_written
from troyproxy.accounting.past import AccountSum, Past
from troyproxy.store.store import SqlStore

pytestmark = pytest.mark.anyio


async def test_attempts_come_oldest_first_since_an_instant(store: SqlStore) -> None:
    for number in range(3):
        attempt = replace(FULL.attempts[1], started_at=float(number))
        store.usage.record(replace(FULL, request_id=f"r{number}", at=float(number), attempts=(attempt,)))
    store.usage.record(BARE)
    await until_written(store)
    past = await store.requests.attempts_since(1.0, limit=10)
    assert past.since == 1.0
    assert [attempt.started_at for attempt in past.attempts] == [1.0, 2.0]
    assert past.attempts[0].usage == FULL.attempts[1].usage


async def test_of_many_the_newest_are_read_and_it_says_since_when(store: SqlStore) -> None:
    for number in range(5):
        store.usage.record(replace(FULL, request_id=f"r{number}", at=float(number)))
    await until_written(store)
    past = await store.requests.attempts_since(0.0, limit=2)
    assert (past.since, len(past.attempts)) == (3.0, 4)


async def test_without_rows_there_is_no_past(store: SqlStore) -> None:
    assert await store.requests.attempts_since(5.0, limit=2) == Past(5.0)


async def test_where_the_client_left_the_last_attempt_is_cancelled(store: SqlStore) -> None:
    store.usage.record(replace(FULL, outcome="cancelled"))
    store.usage.record(replace(BARE, outcome="cancelled"))
    await until_written(store)
    past = await store.requests.attempts_since(0.0, limit=10)
    assert [attempt.outcome for attempt in past.attempts] == ["rate", "cancelled"]


async def test_what_accounts_served_is_summed_between_two_instants(store: SqlStore) -> None:
    for number in range(4):
        store.usage.record(replace(FULL, request_id=f"r{number}", at=float(number)))
    store.usage.record(replace(FULL, request_id="other", at=1.0, account="b", usage=None, cost_usd=None))
    store.usage.record(replace(BARE, at=1.0))
    await until_written(store)
    sums = {each.account: each for each in await store.requests.served_between(1.0, 3.0)}
    assert sums["a"] == AccountSum("groq", "a", 2, 2_040, 2 * 0.00123)
    assert sums["b"] == AccountSum("groq", "b", 1, 0, 0.0)
    assert len(sums) == 2
