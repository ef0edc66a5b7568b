from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.store.waiting import until_written
from troyproxy.accounting.pages import Position
from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.store.queue import BoundedQueue
from troyproxy.store.requests import UsageJournal
from troyproxy.store.store import SqlStore

pytestmark = pytest.mark.anyio

BARE = UsageRow(
    request_id="r0",
    at=100.0,
    route="/v1/embeddings",
    key_id=None,
    key_name=None,
    requested_model="m",
    combo=None,
    strategy=None,
    stream=False,
    status=503,
    outcome="refused",
)
FULL = UsageRow(
    request_id="r1",
    at=200.25,
    route="/v1/chat/completions",
    key_id="k1",
    key_name="ci",
    requested_model="daily",
    combo="daily",
    strategy="fallback",
    stream=True,
    status=200,
    outcome="ok",
    provider="groq",
    model="llama",
    account="a",
    attempts=(
        AttemptRecord("alpha", "m1", "A", "rate", 429, 200.5, 12.5, "slow down", 3.0),
        AttemptRecord("groq", "llama", "a", "ok", None, 201.0, 80.0, usage=Usage(1, 2)),
    ),
    skipped=(("beta/m2", "vision"), ("gamma/m3", "open")),
    seed=2**64 - 1,
    needs={"tools": True, "tokens": 50_000, "modes": ["image"]},
    est_tokens=50_000,
    usage=Usage(1000, 20, 300, 4, 5, estimated=True),
    wasted=Usage(10, 1),
    cost_usd=0.00123,
    duration_ms=93.5,
    overhead_ms=1.5,
    first_token_ms=40.0,
    trail="alpha/m1#A=rate,groq/llama#a=ok",
    adapted="temperature=dropped",
)


def test_the_writer_is_woken_by_the_first_row_that_waits() -> None:
    queue, woken = BoundedQueue(2), []
    journal = UsageJournal(queue, lambda: woken.append(len(queue)))
    for _ in range(3):
        journal.record(BARE)
    queue.take(10)
    journal.record(BARE)
    assert (woken, queue.dropped) == ([1, 3], 1)


@pytest.mark.parametrize("row", [BARE, FULL], ids=["bare", "full"])
async def test_a_usage_row_comes_back_as_it_was_recorded(store: SqlStore, row: UsageRow) -> None:
    store.usage.record(row)
    await until_written(store)
    assert await store.requests.find(row.request_id) == row


async def test_an_unknown_request_is_none(store: SqlStore) -> None:
    assert await store.requests.find("nobody\0\ud800") is None


async def test_recent_rows_come_newest_first_and_bounded(store: SqlStore) -> None:
    for number in range(5):
        store.usage.record(replace(BARE, request_id=f"r{number}", at=float(number)))
    await until_written(store)
    assert [row.request_id for row in await store.requests.recent(limit=3)] == ["r4", "r3", "r2"]


async def test_odd_text_and_numbers_of_a_client_are_stored_cleaned_and_cut(store: SqlStore) -> None:
    odd = replace(
        BARE,
        requested_model="a\0b\ud800" + "x" * 5000,
        needs={"nan": float("nan"), "text": "\0", "odd": {1, 2}, "thing": object},
        skipped=(("a\0", "\udfff"),),
    )
    store.usage.record(odd)
    await until_written(store)
    row = await store.requests.find(BARE.request_id)
    assert row is not None
    assert row.requested_model == "a\ufffdb?" + "x" * 996
    assert row.needs == {"nan": None, "text": "\ufffd", "odd": [1, 2], "thing": "<class 'object'>"}
    assert row.skipped == (("a\ufffd", "?"),)


async def test_a_row_that_was_written_already_is_not_written_twice(store: SqlStore) -> None:
    store.usage.record(FULL)
    store.usage.record(FULL)
    store.usage.record(BARE)
    await until_written(store)
    assert [row.request_id for row in await store.requests.recent()] == ["r1", "r0"]
    assert store.dropped == {"events": 0, "usage": 0}


async def test_rows_follow_a_place_oldest_first(store: SqlStore) -> None:
    rows = [replace(BARE, request_id=f"r{n}", at=100.0 + n // 2) for n in range(6)]
    for row in reversed(rows):
        store.usage.record(row)
    await until_written(store)
    behind = [row.request_id for row in await store.requests.following(Position(101.0, "r2"), limit=2)]
    from_then_on = [row.request_id for row in await store.requests.following(Position(101.0, ""))]
    assert (behind, from_then_on) == (["r3", "r4"], ["r2", "r3", "r4", "r5"])
