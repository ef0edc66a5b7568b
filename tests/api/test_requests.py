"""The list of requests: memory and database as one, in pages, filtered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.api.house import House, fields_of
from tests.telemetry.rows import row
from troyproxy.accounting.pages import Page, Position, Wanted
from troyproxy.accounting.records import UsageRow
from troyproxy.api.admin.paging import cursor_for
from troyproxy.errors import StoreUnavailable

pytestmark = pytest.mark.anyio


async def written(house: House, *rows: UsageRow) -> None:
    """Store rows as another process would: they are not in this one's memory."""
    for each in rows:
        house.store.usage.record(each)
    async with asyncio.timeout(30):
        while house.store.queue_depths["usage"]:  # noqa: ASYNC110 - nothing tells when the writer is done
            await asyncio.sleep(0.002)


def remembered(house: House, *rows: UsageRow) -> None:
    """Put rows into this process's memory only: they are not written yet."""
    for each in rows:
        house.gateway.life._health._observer.request_finished(each)


def ids(body: Any) -> list[str]:  # noqa: ANN401 -- JSON
    return [each["request_id"] for each in body["data"]]


async def test_what_is_stored_and_what_is_remembered_is_one_list(house: House) -> None:
    await written(house, row(request_id="a", at=1.0), row(request_id="c", at=3.0))
    remembered(house, row(request_id="b", at=2.0), row(request_id="d", at=4.0))
    body = await house.get("/api/requests")
    assert (ids(body), body["next_cursor"], body["stored"]) == (["d", "c", "b", "a"], None, True)


async def test_a_request_in_both_is_listed_once(house: House) -> None:
    await house.chat("demo/chat")
    await written(house)
    assert len((await house.get("/api/requests"))["data"]) == 1


async def test_the_cursor_leads_to_the_next_page_until_there_is_none(house: House) -> None:
    await written(house, *(row(request_id=f"r{number}", at=1.0 + number / 3) for number in range(5)))
    remembered(house, row(request_id="fresh", at=1.5))
    seen, path = [], "/api/requests?limit=2"
    while True:
        body = await house.get(path)
        seen.append(ids(body))
        if body["next_cursor"] is None:
            break
        path = f"/api/requests?limit=2&cursor={body['next_cursor']}"
    assert seen == [["r4", "r3"], ["r2", "fresh"], ["r1", "r0"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("key=k1", ["d", "a"]),
        ("key=laptop", ["d", "a"]),
        ("model=beta/m2", ["c"]),
        ("status=503", ["b"]),
        ("outcome=refused", ["b"]),
        ("since=3", ["d", "c"]),
        ("since=1.5&outcome=ok", ["d", "c"]),
        ("outcome=truncated", []),
    ],
)
async def test_a_filter_is_for_both_sources(house: House, query: str, found: list[str]) -> None:
    other = {"key_id": "k2", "key_name": "server"}
    await written(house, row(request_id="a", at=1.0), row(request_id="c", at=3.0, provider="beta", model="m2", **other))
    remembered(house, row(request_id="b", at=2.0, status=503, outcome="refused", **other), row(request_id="d", at=4.0))
    assert ids(await house.get(f"/api/requests?{query}")) == found


async def test_a_full_story_has_every_attempt_and_unix_times(house: House) -> None:
    await house.chat("demo")
    [story] = (await house.get("/api/requests"))["data"]
    assert [attempt["outcome"] for attempt in story["attempts"]] == ["rate", "ok"]
    assert story["at"] == pytest.approx(house.clock.now(), abs=60)


async def test_without_the_database_this_process_remembers(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def page(wanted: Wanted, *, before: Position | None = None, limit: int = 50) -> Page:
        raise StoreUnavailable("down")

    monkeypatch.setattr(house.store.requests, "page", page)
    remembered(house, row(request_id="a"))
    body = await house.get("/api/requests")
    assert (ids(body), body["stored"]) == (["a"], False)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=x", "limit"),
        ("cursor=abc", "cursor"),
        ("cursor=%C3%A4", "cursor"),
        ("cursor=" + cursor_for("1.0x~r1"), "cursor"),
        ("cursor=" + cursor_for("nan~r1"), "cursor"),
        ("cursor=" + cursor_for("1e999~r1"), "cursor"),
        ("since=yesterday", "since"),
        ("since=-1", "since"),
        ("status=99", "status"),
        ("status=600", "status"),
        ("status=ok", "status"),
        ("status=%D9%A3%D9%A3%D9%A3", "status"),
        ("outcome=fine", "outcome"),
        ("key=", "key"),
        ("key=" + "x" * 201, "key"),
        ("model=" + "x" * 201, "model"),
        ("colour=red", "colour"),
    ],
)
async def test_a_wrong_question_is_422_and_names_its_field(house: House, query: str, field: str) -> None:
    answer = await house.ask("GET", f"/api/requests?{query}")
    assert (answer.status, fields_of(answer.json())) == (422, [field])


async def test_a_made_up_cursor_is_only_a_place(house: House) -> None:
    await written(house, row(request_id="a", at=1.0), row(request_id="b", at=2.0))
    assert ids(await house.get(f"/api/requests?cursor={cursor_for('1.5~any thing')}")) == ["a"]
