"""The auto engine through HTTP: packs, budgets, memory, incidents, pools and what is told of it all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.house import KEY
from tests.api.pool import LIMITED_KEY, LOW, OTHER_KEY, PROVIDERS, Pool
from troyproxy.auto.weights import FACTORS

pytestmark = pytest.mark.anyio

PACKS = {"ship-fast": "quick", "cost-saver": "cheap", "quality-first": "clever", "offline-friendly": "roomy"}
VARIANTS = {"auto/fast": "quick", "auto/cheap": "cheap", "auto/coding": "clever", "auto/smart": "clever"}
STRICT = {"x_troy_budget_policy": "strict"}


@pytest.fixture
async def cold(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Pool]:
    """A pool of which nothing is known yet."""
    made = Pool(tmp_path)
    async with made.house.gateway:
        yield made


@pytest.fixture
async def pool(cold: Pool) -> Pool:
    """A pool whose latencies and quotas are known."""
    await cold.warm()
    return cold


# --- packs ---


async def test_four_packs_pick_four_members_of_one_pool(pool: Pool) -> None:
    assert {pack: await pool.first(x_troy_mode=pack) for pack in PACKS} == PACKS


@pytest.mark.parametrize("known", PROVIDERS)
async def test_they_do_so_after_somebody_served_last(pool: Pool, known: str) -> None:
    pool.upstream.sick = {name: 500 for name in PROVIDERS if name != known}
    assert {await pool.first(x_troy_mode=pack) for pack in PACKS} == {known}
    pool.upstream.sick = {}
    pool.clock.move(60.0)
    told = [await pool.explain(headers={"x-troy-mode": pack}) for pack in PACKS]
    assert all(each["auto"][0]["last_known_good"] == f"{known}/m#A" for each in told)
    assert {pack: each["order"][0].partition("/")[0] for pack, each in zip(PACKS, told, strict=True)} == PACKS


@pytest.mark.parametrize(("name", "first"), [*VARIANTS.items(), ("auto/offline", "roomy")])
async def test_a_variant_picks_as_its_pack_does(pool: Pool, name: str, first: str) -> None:
    assert await pool.first(name) == first


@pytest.mark.parametrize(("mode", "first"), [("fast", "quick"), ("cheap", "cheap"), ("AUTO/FAST", "quick")])
async def test_an_alias_or_a_variant_is_a_mode(pool: Pool, mode: str, first: str) -> None:
    assert await pool.first(x_troy_mode=mode) == first


async def test_the_mode_of_the_request_beats_the_variant(pool: Pool) -> None:
    assert await pool.first("auto/cheap", x_troy_mode="quality") == "clever"


async def test_auto_with_a_slash_is_auto(pool: Pool) -> None:
    answer = await pool.ask("auto/")
    assert (answer.status, answer.header("x-troy-combo")) == (200, "auto")


async def test_an_unknown_variant_is_400_and_lists_the_seven(pool: Pool) -> None:
    answer = await pool.ask("auto/best")
    error = answer.json()["error"]
    assert (answer.status, error["code"]) == (400, "unknown_variant")
    assert all(name in error["message"] for name in (*VARIANTS, "auto/offline", "auto/lkgp"))


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("x-troy-mode", "best"),
        ("x-troy-budget-usd", "-1"),
        ("x-troy-budget-usd", "1e3"),
        ("x-troy-budget-usd", "nan"),
        ("x-troy-budget-usd", "five"),
        ("x-troy-budget-policy", "loose"),
        ("x-troy-task", "poetry"),
    ],
)
async def test_an_odd_header_is_400_and_named(pool: Pool, header: str, value: str) -> None:
    answer = await pool.ask(**{header.replace("-", "_"): value})
    error = answer.json()["error"]
    assert (answer.status, error["param"]) == (400, header)
    assert header in error["message"]


async def test_a_combo_that_is_not_auto_reads_no_auto_headers(pool: Pool) -> None:
    answer = await pool.ask("quick/m", x_troy_mode="best")
    assert answer.status == 200


# --- budgets ---


async def test_a_strict_budget_that_nobody_fits_is_402_with_the_cheapest_estimate(pool: Pool) -> None:
    answer = await pool.ask("auto/cheap", x_troy_budget_usd="0.00001", **STRICT)
    error = answer.json()["error"]
    assert (answer.status, error["code"]) == (402, "budget_exceeded")
    assert "0.000100" in error["message"]
    assert pool.upstream.asked == []


async def test_a_strict_budget_where_no_price_is_known_is_402_too(tmp_path: Path) -> None:
    plain = Pool(tmp_path, text=_plain("accounts: [{name: A, api_key: secret}]"))
    async with plain.house.gateway:
        answer = await plain.ask(x_troy_budget_usd="5", **STRICT)
    assert (answer.status, "no price is known" in answer.json()["error"]["message"]) == (402, True)


async def test_a_loose_budget_that_nobody_fits_takes_the_cheapest(pool: Pool) -> None:
    answer = await pool.ask("auto/smart", x_troy_budget_usd="0.00001")
    assert answer.header("x-troy-model") == "cheap/m"
    assert answer.header("x-troy-skipped") == "quick/m=budget,clever/m=budget,roomy/m=budget"


async def test_a_budget_leaves_out_what_is_dearer(pool: Pool) -> None:
    assert await pool.first("auto/smart", x_troy_budget_usd="0.001", **STRICT) == "cheap"
    assert await pool.first("auto/smart", x_troy_budget_usd="0.1", **STRICT) == "clever"


# --- memory ---


async def test_the_last_known_good_leads_within_the_margin_and_says_so(cold: Pool) -> None:
    first = await cold.ask("auto/offline")
    again = await cold.ask("auto/offline")
    assert again.header("x-troy-model") == first.header("x-troy-model")
    assert (first.header("x-troy-strategy"), again.header("x-troy-strategy")) == ("auto", "auto;known")


async def test_auto_lkgp_stays_with_who_served_whatever_he_scores(pool: Pool) -> None:
    pool.upstream.sick = {name: 500 for name in PROVIDERS if name != "clever"}
    assert await pool.first("auto/lkgp") == "clever"
    pool.upstream.sick = {}
    pool.clock.move(60.0)
    assert [await pool.first("auto/lkgp"), await pool.first("auto")] == ["clever", "cheap"]


async def test_it_is_forgotten_after_fifteen_minutes(pool: Pool) -> None:
    assert (await pool.ask()).header("x-troy-strategy") == "auto"
    pool.clock.move(800.0)
    assert (await pool.ask()).header("x-troy-strategy") == "auto;known"
    pool.clock.move(800.0)
    assert (await pool.ask()).header("x-troy-strategy") == "auto;known"
    pool.clock.move(900.0)
    assert (await pool.ask()).header("x-troy-strategy") == "auto"


@pytest.mark.parametrize("other", [{"key": OTHER_KEY}, {"x_troy_session": "s2"}, {"x_troy_mode": "fast"}])
async def test_keys_sessions_and_weights_remember_apart(pool: Pool, other: dict[str, str]) -> None:
    mine = {"x_troy_session": "s1", "key": KEY}
    await pool.ask("auto", **mine)
    assert (await pool.ask("auto", **{**mine, **other})).header("x-troy-strategy") == "auto"
    assert (await pool.ask("auto", **mine)).header("x-troy-strategy") == "auto;known"


async def test_explaining_does_not_keep_a_memory_alive(pool: Pool) -> None:
    await pool.ask()
    pool.clock.move(800.0)
    assert (await pool.explain())["auto"][0]["last_known_good"] is None  # the admin has no key: another memory
    pool.clock.move(200.0)
    assert (await pool.ask()).header("x-troy-strategy") == "auto"


async def test_a_failure_elsewhere_forgets_the_target(pool: Pool) -> None:
    served = await pool.first("auto/lkgp")
    pool.upstream.sick = {served: 500}
    await pool.ask(f"{served}/m")
    pool.upstream.sick = {}
    pool.clock.move(300.0)
    assert (await pool.ask("auto/lkgp")).header("x-troy-strategy") == "auto"


async def test_an_edit_of_the_combo_forgets(pool: Pool) -> None:
    house = pool.house
    members = {"members": ["quick/m", "cheap/m", "clever/m"]}
    await house.post("/api/combos", {"id": "mine", "name": "mine", "strategy": "auto", **members})
    await pool.ask("mine")
    assert (await pool.ask("mine")).header("x-troy-strategy") == "auto;known"
    edited = await house.ask("PATCH", "/api/combos/mine", {"members": ["cheap/m", "quick/m", "clever/m"]})
    assert edited.status == 200, edited.body
    assert (await pool.ask("mine")).header("x-troy-strategy") == "auto"


async def test_an_edit_of_a_combo_in_the_file_forgets(pool: Pool) -> None:
    await pool.ask("inner")
    assert (await pool.ask("inner")).header("x-troy-strategy") == "auto;known"
    text = pool.house.file.read_text(encoding="utf-8")
    pool.house.file.write_text(text.replace("[cheap/m, clever/m]", "[clever/m, cheap/m]"), encoding="utf-8")
    assert (await pool.house.post("/api/config/reload", {})).status == 200
    assert (await pool.ask("inner")).header("x-troy-strategy") == "auto"


async def test_a_removed_account_is_not_known_when_it_comes_back(pool: Pool) -> None:
    text = pool.house.file.read_text(encoding="utf-8")
    served = await pool.first("auto/lkgp")
    lost = text.replace(f"[{{name: A, api_key: {served}-secret}}]", "[]")
    for written in (lost, text):
        pool.house.file.write_text(written, encoding="utf-8")
        assert (await pool.house.post("/api/config/reload", {})).status == 200
    assert (await pool.ask("auto/lkgp")).header("x-troy-strategy") == "auto"


# --- pools ---


def _plain(accounts: str, models: str = "{m: {}, n: {}}", more: str = "") -> str:
    return f"""
providers:
  quick: {{base_url: "http://127.0.0.1:9/v1", {accounts}, models: {models}}}
{more}
keys: [{{name: all, key: {KEY}}}]
"""


async def _pool_of(folder: Path, text: str, **options: object) -> list[str]:
    made = Pool(folder, text=text, **options)
    async with made.house.gateway:
        told = await made.explain()
    return [each["candidate"] for each in told["auto"][0]["candidates"]]


async def test_the_pool_is_the_default_model_of_each_account(tmp_path: Path) -> None:
    text = _plain("accounts: [{name: A, api_key: one}, {name: B, api_key: two}]")
    assert await _pool_of(tmp_path, text) == ["quick/m#A", "quick/m#B"]


async def test_the_pool_is_every_model_where_the_setting_says_so(tmp_path: Path) -> None:
    text = _plain("accounts: [{name: A, api_key: one}]")
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
    text = _plain("accounts: [{name: A, api_key: one, models: [m, n, o]}]", models)
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
    text = _plain("accounts: [{name: A, api_key: one}, {name: B, api_key: two, active: false}]", more=more)
    made = Pool(tmp_path, text=text)
    async with made.house.gateway:
        made.upstream.sick = {"quick": 429, "cheap": 401}
        await made.ask()
        answer = await made.ask()
    message = answer.json()["error"]["message"]
    assert answer.status == 503
    assert all(told in message for told in ("quick/m#A: cooldown (rate)", "quick/m#B: ", "cheap/m#C: cooldown (auth)"))


async def test_nothing_connected_is_503(tmp_path: Path) -> None:
    made = Pool(tmp_path, text=_plain("accounts: []"))
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


# --- what is told ---


async def test_rows_and_metrics_carry_the_auto_id(pool: Pool) -> None:
    answer = await pool.ask("auto/fast")
    story = await pool.house.get(f"/api/requests/{answer.header('x-troy-request-id')}")
    assert (story["combo"], story["strategy"]) == ("auto/fast", "auto")
    text = (await pool.house.ask("GET", "/metrics")).body.decode()
    picked = 'troyproxy_auto_picks_total{combo="auto/fast",model="m",provider="quick"} 1.0'
    assert picked in text
    assert 'troyproxy_requests_total{combo="auto/fast"' in text


async def test_an_incident_shows_in_header_explain_and_metric(tmp_path: Path) -> None:
    providers = "\n".join(
        f'  p{at}: {{base_url: "http://127.0.0.1:9/v1", accounts: [{{name: A, api_key: s{at}}}], models: {{m: {{}}}}}}'
        for at in range(5)
    )
    made = Pool(tmp_path, text=f"providers:\n{providers}\nkeys: [{{name: all, key: {KEY}}}]")
    async with made.house.gateway:
        for name, expected in (("p0", "auto"), ("p1", "auto;known"), ("p2", "auto;known;incident")):
            await _open(made, name)
            await made.ask()
            assert (await made.ask()).header("x-troy-strategy") in {expected, "auto;known", "auto;known;incident"}
        told = (await made.explain())["auto"][0]
        text = (await made.house.ask("GET", "/metrics")).body.decode()
    assert told["incident"] is True
    assert told["weights"]["stability"] > 0.05
    assert 'troyproxy_auto_incident{combo="auto"} 1.0' in text


async def _open(made: Pool, name: str) -> None:
    """Let a provider's circuit open."""
    made.upstream.sick[name] = 500
    for _ in range(6):
        made.clock.move(120.0)  # past its cooldown
        await made.ask(f"{name}/m")
    circuits = (await made.house.get("/api/status"))["circuits"]
    assert [each["state"] for each in circuits if each["provider"] == name] == ["open"]


# --- every factor is alive ---


async def _moved(pool: Pool, before: dict[str, float], factor: str, **asked: object) -> bool:
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
    assert (before["quota"], (await pool.factors())["quota"]) == (0.6, 0.3)


async def test_a_half_open_circuit_moves_the_score(pool: Pool) -> None:
    before = await pool.factors()
    await _open(pool, "quick")
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
    assert await _moved(pool, before, "taskFit", headers={"x-troy-task": "planning"})


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
