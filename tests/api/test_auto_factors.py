"""No factor of the auto engine is a constant: each input moves the score, through HTTP."""

from __future__ import annotations

import pytest

from tests.api.pool import LOW, Pool
from troyproxy.auto.weights import FACTORS

pytestmark = pytest.mark.anyio


async def _moved(pool: Pool, before: dict[str, float], factor: str, **asked: str) -> bool:
    after = await pool.factors(**asked)
    others = [name for name in FACTORS if name != factor and before[name] != after[name]]
    return before[factor] != after[factor] and before["score"] != after["score"] and not others


async def test_a_price_moves_the_score(pool: Pool) -> None:
    before = await pool.factors()
    await pool.house.post("/api/models", {"id": "quick/m", "price": {"input": 3, "output": 3}})
    assert await _moved(pool, before, "costInv")


async def test_a_latency_moves_the_score(pool: Pool) -> None:
    before = await pool.factors()
    pool.upstream.latency_s["quick"] = 2.0
    await pool.ask("quick/m")
    after = await pool.factors()
    assert after["latencyInv"] < before["latencyInv"]
    assert after["stability"] < before["stability"]
    assert after["score"] < before["score"]


async def test_a_quota_header_moves_the_score(pool: Pool) -> None:
    before = await pool.factors()
    pool.upstream.headers["quick"] = (LOW[0], (b"x-ratelimit-remaining-requests", b"30"))
    await pool.ask("quick/m")
    assert (before["quota"], (await pool.factors())["quota"]) == (0.4, 0.3)


async def test_a_half_open_circuit_moves_the_score(pool: Pool) -> None:
    before = await pool.factors()
    await pool.open("quick")
    pool.clock.move(1200.0)
    after = await pool.factors()
    assert (before["health"], after["health"]) == (1.0, 0.5)


async def test_the_tier_of_the_account_moves_the_score(pool: Pool) -> None:
    before = await pool.factors()
    text = pool.house.file.read_text(encoding="utf-8")
    pool.house.file.write_text(text.replace("api_key: quick-secret", "api_key: quick-secret, tier: ultra"), "utf-8")
    await pool.house.post("/api/config/reload", {})
    assert await _moved(pool, before, "tierPriority")


async def test_a_fitness_override_moves_the_score(pool: Pool) -> None:
    before = await pool.factors()
    await pool.house.post("/api/models", {"id": "quick/m", "fitness": {"default": 0.9}})
    assert await _moved(pool, before, "taskFit")


async def test_an_economic_tier_moves_the_score(pool: Pool) -> None:
    before = await pool.factors()
    await pool.house.post("/api/models", {"id": "quick/m", "tier": "free"})
    after = await pool.factors()
    assert after["specificityMatch"] > before["specificityMatch"]
    assert after["tierAffinity"] > before["tierAffinity"]


async def test_the_task_of_the_request_moves_the_score(pool: Pool) -> None:
    await pool.house.post("/api/models", {"id": "quick/m", "fitness": {"default": 0.5, "planning": 0.9}})
    before = await pool.factors()
    assert await _moved(pool, before, "taskFit", task="planning")


async def test_how_specific_a_request_is_moves_the_score(pool: Pool) -> None:
    before = await pool.factors()
    code = "```\ndef f(x): return x\n```\n" * 9 + "Prove by integral and derivative; therefore, because, hence. " * 3
    after = await pool.factors(text=code)
    assert after["specificityMatch"] > before["specificityMatch"]
    assert after["tierAffinity"] > before["tierAffinity"]


async def test_failures_move_the_score(pool: Pool) -> None:
    before = await pool.factors()
    pool.upstream.sick = {"quick": 500}
    await pool.ask("quick/m")
    pool.upstream.sick = {}
    pool.clock.move(120.0)
    assert await _moved(pool, before, "stability")
