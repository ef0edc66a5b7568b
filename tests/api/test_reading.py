"""The admin pages that change nothing."""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.api.house import TOKEN, House
from tests.fakes import settle
from tests.telemetry.rows import row
from troyproxy.accounting.records import UsageRow
from troyproxy.api.admin.requests import WRITTEN_S
from troyproxy.resilience.classes import ErrorClass, Scope
from troyproxy.resilience.events import Failed

pytestmark = pytest.mark.anyio


async def test_the_status_is_empty_at_first(house: House) -> None:
    body = await house.get("/api/status")
    assert (body["circuits"], body["cooldowns"], body["queues"]) == ([], [], {"events": 0, "usage": 0})


async def test_the_status_lists_every_account_with_what_it_carries(house: House) -> None:
    body = await house.get("/api/status")
    assert body["accounts"] == [
        {"provider": "alpha", "account": "team-a", "inflight": 0},
        {"provider": "alpha", "account": "team-b", "inflight": 0},
        {"provider": "local", "account": "local-keyless", "inflight": 0},
        {"provider": "demo", "account": "demo-keyless", "inflight": 0},
    ]


async def test_the_status_shows_a_cooldown_with_its_end(house: House) -> None:
    await house.chat("demo/fail-429-retry-9")
    [lock] = (await house.get("/api/status"))["cooldowns"]
    until = lock.pop("until") - house.clock.now()
    assert 9 <= until < 12
    assert lock == {
        "provider": "demo",
        "account": "demo-keyless",
        "model": "fail-429-retry-9",
        "class": "rate",
        "soft": False,
    }


async def test_the_status_shows_an_open_circuit_and_when_it_may_be_probed(house: House) -> None:
    for _ in range(3):
        await house.chat("demo/fail-500")
        house.clock.move(15)
    [circuit] = [c for c in (await house.get("/api/status"))["circuits"] if c["state"] == "open"]
    assert (circuit["provider"], circuit["model"]) == ("demo", "fail-500")
    assert circuit["until"] > house.clock.now()


async def test_a_lock_of_an_account_that_is_gone_keeps_its_name(house: House) -> None:
    house.gateway.life._health.record(
        Failed(
            at=house.clock.now(),
            provider="gone",
            model="m",
            account="gone#old",
            error_class=ErrorClass.RATE,
            hint_s=None,
            cooldown_s=60.0,
            soft=False,
            scope=Scope.PAIR,
            started_at=house.clock.now(),
        )
    )
    [lock] = (await house.get("/api/status"))["cooldowns"]
    assert (lock["provider"], lock["account"]) == ("gone", "old")


async def test_the_metrics_call_accounts_as_the_status_does(house: House) -> None:
    await house.chat("demo/fail-429-retry-9")
    text = (await house.ask("GET", "/metrics")).body.decode()
    locks = [line for line in text.split("\n") if line.startswith("troyproxy_cooldown_remaining_seconds{")]
    [locked] = [line for line in locks if not line.endswith(" 0.0")]
    assert 'account="demo-keyless"' in locked


async def test_the_status_of_the_configuration_has_its_warnings(house: House) -> None:
    await house.post("/api/combos", {"name": "one", "members": ["nobody/m"]})
    config = (await house.get("/api/status"))["config"]
    assert (config["error"], "nobody/m" in config["warnings"][-1]) == (None, True)


async def test_the_settings_say_where_they_come_from_and_no_secret(house: House) -> None:
    answer = await house.ask("GET", "/api/settings")
    rows = {row["name"]: row for row in answer.json()["data"]}
    assert rows["admin_token"] == {"name": "admin_token", "value": "***", "origin": "environment"}
    assert TOKEN not in answer.body.decode()


async def test_the_last_requests_come_newest_first(house: House) -> None:
    for model in ("demo/ok", "demo/chat", "nothing/here"):
        await house.chat(model)
        house.clock.move(1)
    body = await house.get("/api/requests?limit=2")
    assert [row["requested_model"] for row in body["data"]] == ["nothing/here", "demo/chat"]


async def test_the_full_story_of_a_request_is_told(house: House) -> None:
    answer = await house.chat("demo")
    story = await house.get(f"/api/requests/{answer.header('x-troy-request-id')}")
    assert [(a["model"], a["outcome"]) for a in story["attempts"]] == [("fail-429-retry-1", "rate"), ("chat", "ok")]
    assert (story["status"], story["outcome"], story["combo"]) == (200, "ok", "demo")
    assert story["trail"] == answer.header("x-troy-trail")
    assert isinstance(story["seed"], str)
    assert story["usage"]["output"] > 0
    assert story["needs"]["tools"] is False


async def test_the_story_has_the_skips(house: House) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    answer = await house.chat("alpha/bare", tools=tools)
    story = await house.get(f"/api/requests/{answer.header('x-troy-request-id')}")
    assert (answer.status, story["skipped"]) == (503, [{"member": "alpha/bare", "reason": "no-tools"}])


async def test_a_request_that_memory_has_lost_is_read_from_the_database(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = UsageRow(
        request_id="req_old",
        at=1.0,
        route="/v1/chat/completions",
        key_id=None,
        key_name=None,
        requested_model="m",
        combo=None,
        strategy=None,
        stream=False,
        status=200,
        outcome="ok",
        seed=2**64 - 1,
    )

    async def find(request_id: str) -> UsageRow | None:
        return row if request_id == "req_old" else None

    monkeypatch.setattr(house.store.requests, "find", find)
    assert (await house.get("/api/requests/req_old"))["seed"] == str(2**64 - 1)


async def test_a_request_that_nobody_knows_is_404(house: House) -> None:
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(house.ask("GET", "/api/requests/req_never"))
        await until_waiting(house, WRITTEN_S)
        await house.clock.advance(WRITTEN_S)
    assert (asking.result().status, asking.result().json()["error"]["code"]) == (404, "not_found")


async def test_a_request_that_another_process_is_just_writing_is_waited_for(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[UsageRow] = []

    async def find(request_id: str) -> UsageRow | None:
        return next((row for row in written if row.request_id == request_id), None)

    monkeypatch.setattr(house.store.requests, "find", find)
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(house.get("/api/requests/req_new"))
        await until_waiting(house, WRITTEN_S)
        written.append(row(request_id="req_new", seed=7))
        await house.clock.advance(WRITTEN_S)
    assert asking.result()["seed"] == "7"


async def until_waiting(house: House, seconds: float) -> None:
    """Let the real database answer until somebody sleeps that long."""
    async with asyncio.timeout(20):
        while seconds not in house.clock.slept:
            await settle()


async def test_the_status_names_its_process(house: House) -> None:
    assert (await house.get("/api/status"))["worker"] == {"name": "main", "pid": os.getpid()}


async def test_a_limit_out_of_range_is_422(house: House) -> None:
    assert (await house.ask("GET", "/api/requests?limit=501")).status == 422
