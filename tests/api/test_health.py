"""Alive, ready, degraded."""

from __future__ import annotations

import pytest

from tests.api.house import House
from tests.asgi import drive, http_scope
from troyproxy.api.health import Readiness

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("path", ["/healthz", "/livez"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_process_says_that_it_lives_without_a_key(house: House, path: str, method: str) -> None:
    answer = await house.ask(method, path, authorization="")
    assert (answer.status, answer.json()) == (200, {"status": "ok"})


async def test_all_well_is_ready(house: House) -> None:
    assert await house.get("/readyz", authorization="") == {
        "status": "ok",
        "degraded": [],
        "dependencies": {"database": "ok", "config": "ok"},
    }


async def test_a_database_that_is_down_is_a_degradation_not_an_outage(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(house.store), "up", False)
    body = await house.get("/readyz")
    assert (body["status"], body["degraded"]) == ("degraded", ["database"])


async def test_a_reload_that_was_refused_is_one_too(house: House) -> None:
    house.file.write_text("providers: 7")
    await house.post("/api/config/reload", None)
    assert (await house.get("/readyz"))["degraded"] == ["config"]


async def test_a_gateway_that_stops_takes_no_more_traffic(house: House) -> None:
    house.gateway.life.stopping = True
    answer = await house.ask("GET", "/readyz")
    assert (answer.status, answer.json()["status"]) == (503, "stopping")


async def test_whoever_is_degraded_is_named_in_order() -> None:
    ready = Readiness(lambda: {"b": "down", "a": "slow", "c": "ok"}, lambda: False)
    assert (await drive(ready, http_scope("/readyz", method="GET"))).json()["degraded"] == ["a", "b"]
