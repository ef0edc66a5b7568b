"""The auto engine through HTTP: packs, variants, budgets, and what is told of it all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.house import KEY
from tests.api.pool import PROVIDERS, Pool, written

pytestmark = pytest.mark.anyio

PACKS = {"ship-fast": "quick", "cost-saver": "cheap", "quality-first": "clever", "offline-friendly": "roomy"}
VARIANTS = {"auto/fast": "quick", "auto/cheap": "cheap", "auto/coding": "clever", "auto/smart": "clever"}
STRICT = {"x_troy_budget_policy": "strict"}


async def test_four_packs_pick_four_members_of_one_pool(pool: Pool) -> None:
    assert {pack: await pool.first(x_troy_mode=pack) for pack in PACKS} == PACKS


@pytest.mark.parametrize("known", PROVIDERS)
async def test_they_do_so_after_somebody_served_last(pool: Pool, known: str) -> None:
    pool.upstream.sick = {name: 500 for name in PROVIDERS if name != known}
    assert {await pool.first(x_troy_mode=pack) for pack in PACKS} == {known}
    pool.upstream.sick = {}
    pool.clock.move(60.0)
    await pool.warm()
    assert {pack: await pool.first(x_troy_mode=pack) for pack in PACKS} == PACKS


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


async def test_a_strict_budget_that_nobody_fits_is_402_with_the_cheapest_estimate(pool: Pool) -> None:
    answer = await pool.ask("auto/cheap", x_troy_budget_usd="0.00001", **STRICT)
    error = answer.json()["error"]
    assert (answer.status, error["code"]) == (402, "budget_exceeded")
    assert "0.000100" in error["message"]
    assert pool.upstream.asked == []


async def test_a_strict_budget_where_no_price_is_known_is_402_too(tmp_path: Path) -> None:
    plain = Pool(tmp_path, text=written("accounts: [{name: A, api_key: secret}]"))
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
            await made.open(name)
            await made.ask()
            assert (await made.ask()).header("x-troy-strategy") in {expected, "auto;known", "auto;known;incident"}
        told = (await made.explain())["auto"][0]
        text = (await made.house.ask("GET", "/metrics")).body.decode()
    assert told["incident"] is True
    assert told["weights"]["stability"] > 0.05
    assert 'troyproxy_auto_incident{combo="auto"} 1.0' in text
