"""The leak guard's options through the admin API: kept as written, wrong ones refused with their place."""

from __future__ import annotations

import pytest

from tests.api.house import House

pytestmark = pytest.mark.anyio

BLOCK = {"mode": "repair", "formats": ["F03"], "limits": {"call": 1000}, "repair_exclude": ["rm"]}
MODES = "off or observe or suppress or repair or failover or auto"


async def test_a_provider_keeps_its_block_and_shows_it(house: House) -> None:
    made = await house.post("/api/providers", {"id": "own", "base_url": "http://h.example/v1", "leak": BLOCK})
    assert (made.status, made.json()["effective"]["leak"]) == (201, BLOCK)
    assert (await house.get("/api/providers/own"))["effective"]["leak"] == BLOCK


async def test_a_key_keeps_its_block_and_shows_it(house: House) -> None:
    made = await house.post("/api/keys", {"name": "ci", "leak": {**BLOCK, "locked": True}})
    assert (made.status, made.json()["leak"]) == (201, {**BLOCK, "locked": True})
    assert (await house.get(f"/api/keys/{made.json()['id']}"))["leak"] == {**BLOCK, "locked": True}


async def test_a_combo_keeps_its_block(house: House) -> None:
    made = await house.post("/api/combos", {"name": "one", "members": ["alpha/m1"], "config": {"leak": BLOCK}})
    assert (made.status, made.json()["config"]["leak"]) == (201, BLOCK)


@pytest.mark.parametrize(
    ("path", "body", "field", "allowed"),
    [
        ("/api/providers", {"id": "own", "base_url": "http://h.example/v1", "leak": "mend"}, "leak", MODES),
        ("/api/providers", {"id": "own", "base_url": "http://h.example/v1", "leak": {"mode": 1}}, "leak.mode", MODES),
        ("/api/keys", {"name": "ci", "leak": {"scope": "all"}}, "leak.scope", "start or anywhere"),
        ("/api/combos", {"name": "c", "members": ["alpha/m1"], "config": {"leak": "x"}}, "config.leak", MODES),
        (
            "/api/combos",
            {"name": "c", "members": ["alpha/m1"], "config": {"leak": {"validate": "x"}}},
            "config.leak.validate",
            "off or required or full",
        ),
    ],
)
async def test_what_is_wrong_is_told_with_its_place_and_what_is_allowed(
    house: House, path: str, body: dict[str, object], field: str, allowed: str
) -> None:
    answer = await house.post(path, body)
    (problem,) = answer.json()["error"]["details"]
    assert (answer.status, problem["field"]) == (422, field)
    assert allowed in problem["message"]
