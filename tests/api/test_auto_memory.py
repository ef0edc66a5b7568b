"""What the auto engine remembers of who served last, through HTTP, and what makes it forget."""

from __future__ import annotations

import pytest

from tests.api.house import KEY
from tests.api.pool import OTHER_KEY, PROVIDERS, Pool

pytestmark = pytest.mark.anyio


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


async def test_what_is_remembered_for_a_key_is_explained_where_the_key_is_named(pool: Pool) -> None:
    served = await pool.first()
    told = await pool.house.post(
        "/api/explain?key=all", {"model": "auto", "messages": [{"role": "user", "content": "hi"}]}
    )
    assert told.json()["auto"][0]["last_known_good"] == f"{served}/m#A"


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
