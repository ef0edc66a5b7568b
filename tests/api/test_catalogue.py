"""``POST /api/catalog/refresh``, and what the status says of the catalogue."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.api.house import House, build
from tests.fakes import FakeClock, FakeUpstream, Reply
from troyproxy.api.wiring import Wiring
from troyproxy.errors import StoreUnavailable
from troyproxy.proxy.catalogue_refresh import SOURCE

pytestmark = pytest.mark.anyio

URL = "http://127.0.0.1:9/api.json"
GOOD = json.dumps({"openai": {"models": {"m1": {}, "m2": {"cost": {"input": -1}}}}}).encode()


@asynccontextmanager
async def house_with(folder: Path, *answers: Reply) -> AsyncIterator[House]:
    """A started gateway; the first of *answers* is for the fetch at its start."""
    wiring = Wiring(upstream=FakeUpstream(**{SOURCE: answers}))
    options = {"model_catalog_url": URL, "database_url": f"sqlite+aiosqlite:///{folder}/troy.db"}
    made = build(folder, FakeClock(manual=True), wiring=wiring, **options)
    async with made.gateway:
        async with asyncio.timeout(10):
            while not await _fetched_or_failed(made):  # noqa: ASYNC110 -- nothing tells when a server has answered
                await asyncio.sleep(0.005)
        yield made


async def _fetched_or_failed(house: House) -> bool:
    page = (await house.get("/api/status"))["catalog"]
    return page["fetched_at"] is not None or page["error"] is not None


async def test_a_refresh_tells_what_it_brought(tmp_path: Path) -> None:
    async with house_with(tmp_path, Reply(500), Reply(200, [GOOD])) as house:
        answer = await house.post("/api/catalog/refresh", None)
        assert (answer.status, answer.json()) == (
            200,
            {
                "models": 2,
                "providers": 1,
                "changed": 2,
                "warnings": ["openai/m2: its prices cannot be true and stay unknown"],
            },
        )


async def test_a_refresh_that_fails_says_why_and_keeps_the_old_one(tmp_path: Path) -> None:
    async with house_with(tmp_path, Reply(200, [GOOD]), Reply(200, [b"<html>"])) as house:
        answer = await house.post("/api/catalog/refresh", None)
        assert (answer.status, answer.json()["error"]["code"]) == (502, "upstream_invalid")
        page = (await house.get("/api/status"))["catalog"]
        assert (page["models"], page["error"]) == (2, answer.json()["error"]["message"])


async def test_the_other_processes_are_told(tmp_path: Path) -> None:
    async with house_with(tmp_path, Reply(500), Reply(200, [GOOD])) as house:
        await house.post("/api/catalog/refresh", None)
        assert [event.kind for event in await house.store.control.since(0)] == ["catalogue"]


async def test_a_database_that_cannot_be_written_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def down(*_: object) -> int:
        raise StoreUnavailable("down")

    async with house_with(tmp_path, Reply(500), Reply(200, [GOOD])) as house:
        monkeypatch.setattr(house.store.control, "publish", down)
        answer = await house.post("/api/catalog/refresh", None)
        assert "could not be told" in answer.json()["warnings"][-1]


async def test_without_a_url_there_is_nothing_to_refresh(house: House) -> None:
    answer = await house.post("/api/catalog/refresh", None)
    assert (answer.status, answer.json()["error"]["details"][0]["field"]) == (422, "settings.model_catalog_url")


async def test_without_a_url_the_status_has_no_catalogue(house: House) -> None:
    assert (await house.get("/api/status"))["catalog"] is None


async def test_a_refresh_needs_the_admin_token(house: House) -> None:
    assert (await house.post("/api/catalog/refresh", None, authorization="Bearer no")).status == 401
