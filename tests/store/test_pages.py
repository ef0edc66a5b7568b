"""The stored list of requests: order, filters, pages, and how much it reads for them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.store.test_requests import FULL
from tests.store.waiting import until_written
from troyproxy.accounting.pages import Page, Position, Wanted
from troyproxy.store.requests import SqlRequests
from troyproxy.store.store import SqlStore

pytestmark = pytest.mark.anyio

REFUSED: dict[str, Any] = {"outcome": "refused", "status": 503, "provider": None, "model": None}


@pytest.fixture
async def filled(store: SqlStore) -> SqlStore:
    """Ten requests: every third one of key k2, every fifth refused, two at one instant."""
    for number in range(10):
        key: dict[str, Any] = {"key_id": "k2", "key_name": "other"} if number % 3 == 0 else {}
        outcome: dict[str, Any] = {} if number % 5 else REFUSED
        at = 100.0 + min(number, 8)
        store.usage.record(replace(FULL, request_id=f"r{number}", at=at, **key, **outcome))
    await until_written(store)
    return store


def ids(page: Page) -> list[str]:
    return [row.request_id for row in page.rows]


async def walk(requests: SqlRequests, wanted: Wanted, limit: int) -> list[str]:
    """Return the ids of all pages."""
    page = await requests.page(wanted, limit=limit)
    found = ids(page)
    while page.end is not None:
        page = await requests.page(wanted, before=page.end, limit=limit)
        found += ids(page)
    return found


async def test_pages_come_newest_first_and_two_of_one_instant_by_id(filled: SqlStore) -> None:
    first = await filled.requests.page(Wanted(), limit=3)
    assert (ids(first), first.end) == (["r9", "r8", "r7"], Position(107.0, "r7"))
    assert await walk(filled.requests, Wanted(), 3) == [f"r{number}" for number in range(9, -1, -1)]
    assert await walk(filled.requests, Wanted(), 1) == [f"r{number}" for number in range(9, -1, -1)]


async def test_the_last_page_has_no_end_even_when_it_is_full(filled: SqlStore) -> None:
    page = await filled.requests.page(Wanted(), limit=10)
    assert (len(page.rows), page.end) == (10, None)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"since": 107.0}, ["r9", "r8", "r7"]),
        ({"key": "k2"}, ["r9", "r6", "r3", "r0"]),
        ({"key": "other"}, ["r9", "r6", "r3", "r0"]),
        ({"status": 503}, ["r5", "r0"]),
        ({"outcome": "refused"}, ["r5", "r0"]),
        ({"model": "llama", "key": "k2"}, ["r9", "r6", "r3"]),
        ({"model": "groq/llama", "since": 108.0}, ["r9", "r8"]),
        ({"model": "daily", "outcome": "refused"}, ["r5", "r0"]),
        ({"model": "groq"}, []),
        ({"key": "\0\ud800"}, []),
    ],
)
async def test_a_filter_is_what_it_is_in_memory(filled: SqlStore, wanted: dict[str, Any], found: list[str]) -> None:
    assert ids(await filled.requests.page(Wanted(**wanted))) == found


@pytest.mark.parametrize("most", [1, 2, 3, 4, 100])
@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_a_filtered_page_reads_a_bounded_number_of_rows_and_the_pages_miss_none(
    filled: SqlStore, most: int, limit: int
) -> None:
    requests = SqlRequests(filled._database, most_scanned=most)
    assert await walk(requests, Wanted(status=503), limit) == ["r5", "r0"]


async def test_a_short_page_says_that_there_may_be_more(filled: SqlStore) -> None:
    page = await SqlRequests(filled._database, most_scanned=3).page(Wanted(status=503))
    assert (ids(page), page.end) == ([], Position(106.0, ""))


async def test_a_filtered_list_ends_where_its_time_ends(filled: SqlStore) -> None:
    page = await SqlRequests(filled._database, most_scanned=4).page(Wanted(status=503, since=105.5))
    assert (ids(page), page.end) == ([], None)


async def test_a_place_that_nobody_gave_out_is_only_a_place(filled: SqlStore) -> None:
    assert ids(await filled.requests.page(Wanted(), before=Position(100.5, "\0\ud800"))) == ["r0"]
    assert ids(await filled.requests.page(Wanted(), before=Position(-1e300, "x"))) == []
