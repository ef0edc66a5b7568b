"""Who is in the pool of the auto engine, who is out of it and why, through HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.pool import LIMITED_KEY, Pool, written

pytestmark = pytest.mark.anyio

STRICT = {"x_troy_budget_policy": "strict"}


async def _pool_of(folder: Path, text: str, **options: object) -> list[str]:
    made = Pool(folder, text=text, **options)
    async with made.house.gateway:
        told = await made.explain()
    return [each["candidate"] for each in told["auto"][0]["candidates"]]


async def test_the_pool_is_the_default_model_of_each_account(tmp_path: Path) -> None:
    text = written("accounts: [{name: A, api_key: one}, {name: B, api_key: two}]")
    assert await _pool_of(tmp_path, text) == ["quick/m#A", "quick/m#B"]


async def test_the_pool_is_every_model_where_the_setting_says_so(tmp_path: Path) -> None:
    text = written("accounts: [{name: A, api_key: one}]")
    assert await _pool_of(tmp_path, text, auto_models="all") == ["quick/m#A", "quick/n#A"]


async def test_a_new_account_is_in_the_pool_with_the_next_request(pool: Pool) -> None:
    new = {"provider": "quick", "name": "B", "api_key": "quick-other-secret"}
    assert (await pool.house.post("/api/connections", new)).status == 201
    told = (await pool.explain())["auto"][0]["candidates"]
    assert "quick/m#B" in [each["candidate"] for each in told]


async def test_a_key_that_opens_some_of_the_pool_gets_those(pool: Pool) -> None:
    answer = await pool.ask("auto/fast", LIMITED_KEY)
    assert answer.header("x-troy-model") == "cheap/m"
    assert answer.header("x-troy-skipped") == "quick/m=not-allowed,clever/m=not-allowed,roomy/m=not-allowed"


async def test_hard_needs_filter_the_pool(tmp_path: Path) -> None:
    models = "{m: {tools: false}, n: {tools: true, context: 100}, o: {tools: true}}"
    text = written("accounts: [{name: A, api_key: one, models: [m, n, o]}]", models)
    made = Pool(tmp_path, text=text)
    async with made.house.gateway:
        told = await made.explain(text="x" * 1000, tools=[{"type": "function", "function": {"name": "f"}}])
    assert {each["member"]: each["reason"] for each in told["members"]} == {
        "quick/m": "no-tools",
        "quick/n": "context",
        "quick/o": None,
    }


async def test_nobody_left_says_why_for_each_account(tmp_path: Path) -> None:
    more = '  cheap: {base_url: "http://127.0.0.1:9/v1", models: {m: {}}, accounts: [{name: C, api_key: x}]}'
    text = written("accounts: [{name: A, api_key: one}, {name: B, api_key: two, active: false}]", more=more)
    made = Pool(tmp_path, text=text)
    async with made.house.gateway:
        made.upstream.sick, made.upstream.latency_s = {"quick": 429, "cheap": 401}, {}
        await made.ask()
        answer = await made.ask()
    message = answer.json()["error"]["message"]
    assert answer.status == 503
    assert all(
        told in message for told in ("quick/m#A: cooldown (rate)", "quick/m#B: disabled", "cheap/m#C: cooldown (auth)")
    )


async def test_nothing_connected_is_503(tmp_path: Path) -> None:
    made = Pool(tmp_path, text=written("accounts: []"))
    async with made.house.gateway:
        answer = await made.ask()
    assert (answer.status, answer.json()["error"]["code"]) == (503, "no_eligible_member")


async def test_an_auto_combo_in_a_combo_is_one_unit_with_its_own_order(pool: Pool) -> None:
    assert await pool.first("outer") == "quick"
    pool.upstream.sick = {"quick": 500}
    answer = await pool.ask("outer")
    assert answer.header("x-troy-trail") == "quick/m#A=transient,cheap/m#A=ok"


async def test_a_combo_in_an_auto_combo_is_scored_member_by_member(pool: Pool) -> None:
    body = {"name": "wide", "strategy": "auto", "members": ["quick/m", {"combo": "inner"}]}
    assert (await pool.house.post("/api/combos", body)).status == 201
    assert await pool.first("wide", x_troy_mode="quality") == "clever"


async def test_nobody_of_the_pool_the_combo_around_goes_on(pool: Pool) -> None:
    members = [{"combo": "inner"}, "quick/m"]
    assert (await pool.house.post("/api/combos", {"name": "around", "members": members})).status == 201
    assert await pool.first("around", x_troy_budget_usd="0.00001", **STRICT) == "quick"
