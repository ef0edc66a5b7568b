"""``/api/combos``."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import chain, repeat
from unittest.mock import patch

import pytest

from tests.api.house import KEY, House, fields_of
from troyproxy.errors import StoreUnavailable

pytestmark = pytest.mark.anyio

ONE = {"name": "one", "members": ["demo/ok"]}


async def test_a_created_combo_is_answered_as_it_is_stored(house: House) -> None:
    made = await house.post("/api/combos", {**ONE, "strategy": "round-robin", "config": {"sticky": 2}})
    body = made.json()
    created = body.pop("created_at")
    assert created > 0
    assert (made.status, body) == (
        201,
        {
            "id": "one",
            "name": "one",
            "strategy": "round-robin",
            "members": [{"model": "demo/ok", "weight": 1.0}],
            "config": {"sticky": 2},
            "effective_weights": None,
            "origin": "database",
            "version": 1,
            "warnings": [],
        },
    )


async def test_its_location_and_version_are_in_the_headers(house: House) -> None:
    made = await house.post("/api/combos", ONE)
    assert (made.header("location"), made.header("etag")) == ("/api/combos/one", '"1"')


async def test_the_next_request_is_served_by_it(house: House) -> None:
    await house.post("/api/combos", ONE)
    answer = await house.chat("one")
    assert (answer.status, answer.header("x-troy-combo")) == (200, "one")


async def test_a_deleted_combo_is_not_found_by_the_next_request(house: House) -> None:
    await house.post("/api/combos", ONE)
    gone = await house.ask("DELETE", "/api/combos/one")
    answer = await house.chat("one")
    assert (gone.json(), answer.status) == ({"id": "one", "deleted": True, "warnings": []}, 404)


async def test_the_id_that_a_client_chose_is_honoured(house: House) -> None:
    made = await house.post("/api/combos", {**ONE, "id": "my-slug", "name": "模型-快"})
    assert (made.json()["id"], made.json()["name"]) == ("my-slug", "模型-快")


async def test_a_name_that_is_no_slug_gets_an_id(house: House) -> None:
    made = (await house.post("/api/combos", {**ONE, "name": "模型-快"})).json()
    assert made["id"].startswith("c-")


async def test_models_is_another_name_for_members(house: House) -> None:
    made = await house.post("/api/combos", {"name": "one", "models": ["demo/ok", "demo/chat"]})
    assert [member["model"] for member in made.json()["members"]] == ["demo/ok", "demo/chat"]


async def test_a_member_may_be_pinned_weighted_or_another_combo(house: House) -> None:
    members = [{"model": "alpha/gpt-x", "account": "team-a", "weight": 3}, {"combo": "filed"}, "combo/demo"]
    made = await house.post("/api/combos", {"name": "one", "members": members})
    assert made.json()["members"] == [
        {"model": "alpha/gpt-x", "account": "team-a", "weight": 3.0},
        {"combo": "filed", "weight": 1.0},
        {"combo": "demo", "weight": 1.0},
    ]


async def test_what_was_read_can_be_put_back(house: House) -> None:
    made = (await house.post("/api/combos", ONE)).json()
    again = await house.ask("PUT", "/api/combos/one", made)
    assert (again.status, again.json()["version"]) == (200, 2)


@pytest.mark.parametrize("spelling", ["café", "cafe\u0301", "caf%C3%A9"])
async def test_a_combo_goes_by_its_name_in_any_spelling(house: House, spelling: str) -> None:
    await house.post("/api/combos", {**ONE, "name": "cafe\u0301"})
    assert (await house.get(f"/api/combos/{spelling}"))["name"] == "café"


async def test_a_name_with_a_slash_is_found_by_it(house: House) -> None:
    await house.post("/api/combos", {**ONE, "id": "x", "name": "team/one"})
    assert (await house.get("/api/combos/team%2Fone"))["id"] == "x"


async def test_replacing_puts_the_whole_combo_anew_but_keeps_its_name(house: House) -> None:
    await house.post("/api/combos", {**ONE, "strategy": "random"})
    body = (await house.ask("PUT", "/api/combos/one", {"members": ["demo/chat"]})).json()
    assert (body["name"], body["strategy"], body["version"]) == ("one", "fallback", 2)


async def test_changing_keeps_what_is_not_given(house: House) -> None:
    await house.post("/api/combos", {**ONE, "strategy": "random"})
    body = (await house.ask("PATCH", "/api/combos/one", {"models": ["demo/chat"], "name": "two"})).json()
    assert (body["id"], body["name"], body["strategy"]) == ("one", "two", "random")
    assert body["members"] == [{"model": "demo/chat", "weight": 1.0}]


async def test_the_id_cannot_be_changed(house: House) -> None:
    await house.post("/api/combos", ONE)
    answer = await house.ask("PUT", "/api/combos/one", {**ONE, "id": "two"})
    assert (answer.status, fields_of(answer.json())) == (422, ["id"])


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(("tag", "status"), [('"1"', 412), ('"2"', 200), ('W/"2"', 200), ("*", 200), ('"x"', 412)])
async def test_if_match_guards_against_lost_writes(house: House, method: str, tag: str, status: int) -> None:
    await house.post("/api/combos", ONE)
    await house.ask("PUT", "/api/combos/one", ONE)
    assert (await house.ask(method, "/api/combos/one", ONE, if_match=tag)).status == status


@pytest.mark.parametrize(("headers", "status"), [({}, 200), ({"if_match": '"1"'}, 412)])
async def test_a_change_is_never_laid_over_what_somebody_else_just_wrote(
    house: House, headers: dict[str, str], status: int
) -> None:
    await house.post("/api/combos", ONE)
    [combo] = await house.store.combos.list()
    theirs = await house.store.combos.replace(replace(combo, config={"theirs": True}))
    seen = chain([[combo]] * 2, repeat([theirs]))
    with patch.object(house.store.combos, "list", side_effect=seen):
        answer = await house.ask("PATCH", "/api/combos/one", {"strategy": "random"}, **headers)
    assert answer.status == status
    assert (await house.get("/api/combos/one"))["config"] == {"theirs": True}


async def test_the_list_has_every_combo_with_its_origin(house: House) -> None:
    await house.post("/api/combos", ONE)
    listed = await house.get("/api/combos")
    assert [(c["id"], c["origin"]) for c in listed["data"]] == [
        ("demo", "builtin"),
        ("filed", "file"),
        ("one", "database"),
    ]


async def test_the_list_comes_in_pages(house: House) -> None:
    for name in ("c", "d"):
        await house.post("/api/combos", {**ONE, "name": name})
    seen, cursor = [], ""
    while cursor is not None:
        page = await house.get(f"/api/combos?limit=2&cursor={cursor}")
        seen.append([combo["id"] for combo in page["data"]])
        cursor = page["next_cursor"]
    assert seen == [["c", "d"], ["demo", "filed"]]


@pytest.mark.parametrize("limit", ["0", "501", "-1", "x", "²", "9" * 5000])
async def test_a_limit_out_of_range_is_422(house: House, limit: str) -> None:
    answer = await house.ask("GET", f"/api/combos?limit={limit}")
    assert (answer.status, fields_of(answer.json())) == (422, ["limit"])


async def test_a_combo_that_another_process_wrote_is_seen_at_once(house: House) -> None:
    await house.post("/api/combos", ONE)
    other = (await house.store.combos.list())[0]
    await house.store.combos.remove(other.id)
    assert (await house.ask("GET", "/api/combos/one")).status == 404


async def test_a_stored_combo_that_the_file_hides_is_not_listed(house: House) -> None:
    await house.post("/api/combos", ONE)
    text = house.file.read_text().replace("filed:", "one:")
    house.file.write_text(text)
    await house.post("/api/config/reload", None)
    listed = await house.get("/api/combos")
    assert [(c["id"], c["origin"]) for c in listed["data"]] == [("demo", "builtin"), ("one", "file")]


async def test_a_write_while_the_file_is_broken_is_kept_and_says_so(house: House) -> None:
    house.file.write_text("providers: 7")
    answer = await house.post("/api/combos", ONE)
    assert (answer.status, "not in force yet" in answer.json()["warnings"][0]) == (201, True)


async def test_a_database_that_is_down_is_503(house: House) -> None:
    with patch.object(house.store.combos, "list", side_effect=StoreUnavailable("the database is down")):
        answer = await house.ask("GET", "/api/combos")
    assert (answer.status, answer.json()["error"]["code"]) == (503, "store_unavailable")


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"", {}, 400, "invalid_json"),
        (b"{", {}, 400, "invalid_json"),
        (b"[]", {}, 400, "invalid_request"),
        (b"{}", {"content_type": "text/plain"}, 415, "unsupported_media_type"),
        (b"{}", {"content_length": "2000000"}, 413, "body_too_large"),
    ],
)
async def test_a_body_that_cannot_be_read_says_why(
    house: House, body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    answer = await house.ask("POST", "/api/combos", body, **headers)
    assert (answer.status, answer.json()["error"]["code"]) == (status, code)


async def test_a_client_key_does_not_open_it(house: House) -> None:
    assert (await house.ask("GET", "/api/combos", authorization=f"Bearer {KEY}")).status == 401


async def test_two_edits_at_once_cannot_close_a_ring(house: House) -> None:
    for name in ("ra", "rb"):
        await house.post("/api/combos", {"name": name, "members": ["demo/ok"]})
    answers = await asyncio.gather(
        house.ask("PATCH", "/api/combos/ra", {"members": [{"combo": "rb"}]}),
        house.ask("PATCH", "/api/combos/rb", {"members": [{"combo": "ra"}]}),
    )
    assert sorted(answer.status for answer in answers) == [200, 400]


async def test_edits_at_once_without_a_version_all_succeed(house: House) -> None:
    await house.post("/api/combos", {"name": "busy", "members": ["demo/ok"]})
    edits = (house.ask("PATCH", "/api/combos/busy", {"config": {"sticky": n}}) for n in range(1, 11))
    assert {answer.status for answer in await asyncio.gather(*edits)} == {200}
