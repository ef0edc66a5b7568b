"""Figures of the last hours and days, over what was really asked."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.api.house import House, fields_of
from tests.api.test_requests import written
from tests.telemetry.rows import attempt, row
from troyproxy.accounting.usage import Usage
from troyproxy.errors import StoreUnavailable

pytestmark = pytest.mark.anyio

DAY_S = 86_400.0


async def test_what_was_asked_is_counted(house: House) -> None:
    for model in ("demo", "demo/chat", "nothing/here"):
        await house.chat(model)
    await written(house)
    totals = (await house.get("/api/stats"))["totals"]
    assert (totals["requests"], totals["succeeded"], totals["failed"], totals["success_rate"]) == (3, 2, 0, 1.0)
    assert (totals["attempts"], totals["attempts_per_request"], totals["failovers"]) == (3, 1.0, 0)
    assert totals["output_tokens"] > 0


async def test_every_breakdown_names_its_groups(house: House) -> None:
    tries = (attempt(provider="beta", outcome="rate"), attempt())
    now = house.clock.now()
    await written(
        house,
        row(request_id="a", at=now - 60, attempts=tries),
        row(request_id="b", at=now - 50, outcome="refused", provider=None, model=None, usage=None, cost_usd=None),
    )
    body = await house.get("/api/stats?hours=1")
    assert [(each["provider"], each["requests"]) for each in body["by_provider"]] == [("alpha", 1), (None, 1)]
    served = next(each for each in body["by_model"] if each["model"] == "m1")
    assert (served["provider"], served["failovers"], served["cost_usd"], served["input_tokens"]) == (
        "alpha",
        1,
        0.25,
        100,
    )
    assert served["first_token_ms"] == {"p50": 300.0, "p95": 300.0}
    assert [(each["key_id"], each["key_name"], each["requests"]) for each in body["by_key"]] == [("k1", "laptop", 2)]
    assert [(each["combo"], each["success_rate"]) for each in body["by_combo"]] == [("combo1", 0.5)]
    assert {each["outcome"]: each["requests"] for each in body["by_outcome"]} == {"ok": 1, "refused": 1}


async def test_a_window_says_what_it_is_about(house: House) -> None:
    now = house.clock.now()
    await written(house, row(request_id="a", at=now - 7300), row(request_id="b", at=now - 7100))
    body = await house.get("/api/stats?hours=2")
    assert (body["hours"], body["since"], body["until"], body["complete"]) == (2, now - 7200, now, True)
    assert (body["totals"]["requests"], body["timed"]) == (1, {"requests": 1, "sampled": False})


async def test_percentiles_of_a_part_say_that_they_are(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    now = house.clock.now()
    await written(house, *(row(request_id=f"r{n}", at=now - n, duration_ms=float(n)) for n in range(5)))
    monkeypatch.setattr(house.store.statistics, "_most_timed", 3)
    body = await house.get("/api/stats")
    assert body["timed"] == {"requests": 3, "sampled": True}
    assert body["totals"]["duration_ms"] == {"p50": 1.0, "p95": 2.0}


async def test_nothing_asked_is_nothing_known(house: House) -> None:
    body = await house.get("/api/stats")
    assert (body["totals"]["requests"], body["totals"]["cost_usd"], body["totals"]["success_rate"]) == (0, None, None)
    assert (body["totals"]["duration_ms"], body["by_model"]) == ({"p50": None, "p95": None}, [])


# --- by the day -------------------------------------------------------------------------------------------------------


def day(house: House, back: int = 0) -> str:
    return (datetime.fromtimestamp(house.clock.now(), UTC) - timedelta(days=back)).date().isoformat()


async def daily(house: House, query: str = "") -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = (await house.get(f"/api/stats/daily{query}"))["data"]
    return data


async def test_a_day_without_requests_is_there_with_zeros(house: House) -> None:
    await written(house, row(request_id="a", at=house.clock.now() - 2 * DAY_S))
    data = await daily(house, "?days=4")
    assert [(each["day"], each["requests"]) for each in data] == [
        (day(house, 3), 0),
        (day(house, 2), 1),
        (day(house, 1), 0),
        (day(house), 0),
    ]
    assert (data[0]["cost_usd"], data[0]["success_rate"], data[0]["mean_duration_ms"]) == (0.0, None, None)
    assert (data[1]["cost_usd"], data[1]["success_rate"], data[1]["mean_duration_ms"]) == (0.25, 1.0, 1500.0)


async def test_a_month_is_the_default(house: House) -> None:
    data = await daily(house)
    assert (len(data), data[-1]["day"]) == (30, day(house))


@pytest.mark.parametrize(
    ("group_by", "groups"),
    [
        ("provider", [("alpha", "alpha", 1), ("beta", "beta", 1)]),
        ("model", [("alpha/m1", "alpha/m1", 1), ("beta/m1", "beta/m1", 1)]),
        ("key", [("k1", "laptop", 2)]),
    ],
)
async def test_days_are_told_apart(house: House, group_by: str, groups: list[tuple[str, str, int]]) -> None:
    now = house.clock.now()
    await written(house, row(request_id="a", at=now), row(request_id="b", at=now, provider="beta"))
    before, today = await daily(house, f"?days=2&group_by={group_by}")
    assert [(each["group"], each["name"], each["requests"]) for each in today["groups"]] == groups
    assert (before["groups"], today["requests"]) == ([], 2)


async def test_sums_outlive_their_rows_and_tokens_of_failures_are_wasted(house: House) -> None:
    await written(house, row(request_id="a", at=house.clock.now() - 3000 * DAY_S, wasted=Usage(7, 3)))
    data = await daily(house, "?days=3660")
    assert [(each["requests"], each["wasted_tokens"]) for each in data if each["requests"]] == [(1, 10)]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/stats?hours=0", "hours"),
        ("/api/stats?hours=721", "hours"),
        ("/api/stats?hours=1.5", "hours"),
        ("/api/stats/daily?days=0", "days"),
        ("/api/stats/daily?days=3661", "days"),
        ("/api/stats/daily?group_by=colour", "group_by"),
        ("/api/stats/daily?days=367&group_by=key", "days"),
    ],
)
async def test_a_wrong_question_is_422_and_names_its_field(house: House, path: str, field: str) -> None:
    answer = await house.ask("GET", path)
    assert (answer.status, fields_of(answer.json())) == (422, [field])


async def test_without_the_database_there_are_no_figures(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def down(*_: object) -> None:
        await asyncio.sleep(0)
        raise StoreUnavailable("down")

    monkeypatch.setattr(house.store.statistics, "window", down)
    assert (await house.ask("GET", "/api/stats")).status == 503
