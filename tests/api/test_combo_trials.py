"""``/api/combos/{id}/explain`` and ``/test``."""

from __future__ import annotations

import pytest

from tests.api.house import House

pytestmark = pytest.mark.anyio


async def test_a_combo_explains_itself_without_a_request(house: House) -> None:
    answer = await house.post("/api/combos/filed/explain", None)
    told = answer.json()
    assert (answer.status, told["model"]["combo"], told["order"]) == (200, "filed", ["alpha/gpt-x", "alpha/bare"])


async def test_a_request_may_be_given_and_its_model_is_the_combo(house: House) -> None:
    body = {"model": "demo", "messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function"}]}
    told = (await house.post("/api/combos/filed/explain", body)).json()
    assert [(one["member"], one["reason"]) for one in told["members"]] == [
        ("alpha/gpt-x", None),
        ("alpha/bare", "no-tools"),
    ]


async def test_a_request_that_is_given_is_explained_as_it_is(house: House) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}]}
    explained = [(await house.post("/api/combos/filed/explain", given)).json() for given in (body, None, {"n": 1})]
    assert [one["needs"]["max_output"] for one in explained] == [None, 32, None]


async def test_explaining_opens_nothing_and_moves_no_cursor(house: House) -> None:
    await house.post("/api/combos", {"name": "turns", "strategy": "round-robin", "members": ["demo/ok", "demo/chat"]})
    orders = [(await house.post("/api/combos/turns/explain", None)).json()["order"] for _ in range(3)]
    assert orders == [orders[0]] * 3
    assert (await house.get("/api/requests"))["data"] == []


async def test_a_bad_request_to_explain_is_the_clients_own_error(house: House) -> None:
    answers = [
        await house.post("/api/combos/filed/explain", b"{"),
        await house.post("/api/combos/filed/explain", {"messages": 7}),
        await house.post("/api/combos/filed/explain", {"reasoning_effort": "most"}),
    ]
    assert [(a.status, a.json()["error"]["code"]) for a in answers] == [
        (400, "invalid_json"),
        (400, "invalid_request"),
        (400, "invalid_effort"),
    ]


async def test_each_member_is_asked_and_told(house: House) -> None:
    await house.post("/api/combos", {"name": "mixed", "members": ["demo/fail-500", "demo/ok", "nobody/m"]})
    answer = await house.post("/api/combos/mixed/test", None)
    told = answer.json()
    assert (answer.status, told["id"], told["ok"]) == (200, "mixed", True)
    assert [(m["member"], m["ok"], m["status"], m["class"], m["skipped"]) for m in told["members"]] == [
        ("demo/fail-500", False, 500, "transient", None),
        ("demo/ok", True, 200, None, None),
        ("nobody/m", False, None, None, "unknown-provider"),
    ]


async def test_a_combo_of_which_nobody_answers_is_not_ok(house: House) -> None:
    await house.post("/api/combos", {"name": "broken", "members": ["demo/fail-500"]})
    told = (await house.post("/api/combos/broken/test", None)).json()
    assert (told["ok"], told["members"][0]["attempts"][0]["outcome"]) == (False, "transient")


async def test_a_trial_is_recorded_under_a_key_of_its_own(house: House) -> None:
    await house.post("/api/combos", {"name": "one", "members": ["demo/ok"]})
    await house.post("/api/combos/one/test", None)
    [row] = (await house.get("/api/requests"))["data"]
    assert (row["key_name"], row["outcome"], row["trail"]) == ("test", "ok", "demo/ok#demo-keyless=ok")


@pytest.mark.parametrize("what", ["explain", "test"])
async def test_a_name_with_a_slash_is_found(house: House, what: str) -> None:
    await house.post("/api/combos", {"id": "x", "name": "team/one", "members": ["demo/ok"]})
    assert (await house.post(f"/api/combos/team%2Fone/{what}", None)).status == 200


@pytest.mark.parametrize("what", ["explain", "test"])
async def test_a_combo_that_is_not_there_is_404(house: House, what: str) -> None:
    answer = await house.post(f"/api/combos/ghost/{what}", None)
    assert (answer.status, answer.json()["error"]["code"]) == (404, "not_found")
