"""``/api/models``."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from tests.api.house import KEY, House, fields_of
from troyproxy.errors import StoreUnavailable

pytestmark = pytest.mark.anyio

GPT = "/api/models/alpha/gpt-x"


async def listed(house: House, name: str) -> dict[str, object]:
    """Return the entry of a model in the client's list."""
    found: dict[str, object] = await house.get(f"/v1/models/{name}", authorization=f"Bearer {KEY}")
    return found


async def test_an_override_is_in_force_when_it_is_answered(house: House) -> None:
    answer = await house.post("/api/models", {"id": "alpha/gpt-x", "context": 99, "vision": True})
    assert (answer.status, answer.header("location"), answer.header("etag")) == (201, GPT, '"1"')
    entry = await listed(house, "alpha/gpt-x")
    assert entry["context_length"] == 99
    assert entry["max_output_tokens"] == 1000


async def test_it_is_answered_with_what_was_written_and_what_counts(house: House) -> None:
    body = (await house.post("/api/models", {"id": "alpha/gpt-x", "price": {"input": 1, "cached": 0.5}})).json()
    nothing = {"tools": None, "vision": None, "reasoning": None, "json": None, "audio": None, "output": None}
    assert body.pop("effective")["context"] == 8000
    assert body == {
        "id": "alpha/gpt-x",
        "provider": "alpha",
        "model": "gpt-x",
        **nothing,
        "context": None,
        "price": {"input": 1.0, "output": None, "cached": 0.5},
        "tool_calls": None,
        "efforts": [],
        "aliases": [],
        "tier": None,
        "fitness": {},
        "no_sampling_with_effort": False,
        "no_effort": False,
        "overridden": True,
        "origin": "database",
        "read_only": False,
        "version": 1,
        "warnings": [],
    }


async def test_a_model_that_no_list_has_is_added_by_its_override(house: House) -> None:
    await house.post("/api/models", {"id": "local/org/new:free", "tools": True, "aliases": ["newest"]})
    assert (await listed(house, "local/org/new:free"))["owned_by"] == "local"
    assert (await house.get("/api/models/local/newest"))["id"] == "local/org/new:free"


async def test_a_model_without_an_override_is_read_too(house: House) -> None:
    body = await house.get(GPT)
    assert (body["overridden"], body["origin"], body["version"], body["context"]) == (False, "file", 0, None)
    assert (body["effective"]["context"], body["effective"]["tools"]) == (8000, True)


async def test_put_writes_whether_there_is_one_or_not(house: House) -> None:
    first = await house.ask("PUT", GPT, {"context": 99, "tools": False})
    again = await house.ask("PUT", GPT, {"context": 98})
    assert (first.status, first.header("location")) == (201, GPT)
    assert (again.status, again.header("location"), again.header("etag")) == (200, None, '"2"')
    assert (again.json()["context"], again.json()["tools"], again.json()["effective"]["tools"]) == (98, None, True)


async def test_patch_keeps_what_is_not_given_and_null_takes_away(house: House) -> None:
    await house.ask("PUT", GPT, {"context": 99, "tools": False, "vision": True})
    body = (await house.ask("PATCH", GPT, {"context": 98, "tools": None})).json()
    assert (body["context"], body["tools"], body["vision"]) == (98, None, True)


async def test_what_was_read_can_be_put_back(house: House) -> None:
    await house.ask("PUT", GPT, {"efforts": ["low", "high"], "tool_calls": "drifts", "no_sampling_with_effort": True})
    read = await house.get(GPT)
    again = (await house.ask("PUT", GPT, read)).json()
    assert again == {**read, "version": 2, "warnings": []}


async def test_a_removed_override_lets_the_catalogue_show(house: House) -> None:
    await house.ask("PUT", GPT, {"context": 99})
    gone = await house.ask("DELETE", GPT)
    assert gone.json() == {"id": "alpha/gpt-x", "deleted": True, "warnings": []}
    assert (await listed(house, "alpha/gpt-x"))["context_length"] == 8000


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(("tag", "status"), [('"1"', 412), ('"2"', 200), ("*", 200)])
async def test_if_match_guards_against_lost_writes(house: House, method: str, tag: str, status: int) -> None:
    await house.ask("PUT", GPT, {"context": 99})
    await house.ask("PUT", GPT, {"context": 98})
    assert (await house.ask(method, GPT, {}, if_match=tag)).status == status


@pytest.mark.parametrize("tag", ['"0"', "*"])
async def test_what_is_not_there_matches_no_version(house: House, tag: str) -> None:
    assert (await house.ask("PUT", GPT, {"context": 99}, if_match=tag)).status == 412


async def test_the_list_has_the_overrides_by_spec(house: House) -> None:
    for spec in ("local/b", "alpha/gpt-x", "local/a"):
        await house.post("/api/models", {"id": spec})
    first = await house.get("/api/models?limit=2")
    rest = await house.get(f"/api/models?limit=2&cursor={first['next_cursor']}")
    assert [[one["id"] for one in page["data"]] for page in (first, rest)] == [["alpha/gpt-x", "local/a"], ["local/b"]]


async def test_the_whole_list_has_every_model_of_connected_providers(house: House) -> None:
    await house.ask("PUT", GPT, {"context": 99})
    page = await house.get("/api/models?all=true&limit=500")
    told = {one["id"]: (one["origin"], one["overridden"]) for one in page["data"]}
    assert told["alpha/gpt-x"] == ("database", True)
    assert told["alpha/bare"] == ("file", False)
    assert told["demo/chat"] == ("builtin", False)


async def test_an_override_of_the_file_is_read_only(house: House) -> None:
    house.file.write_text(house.file.read_text() + 'models: {"alpha/gpt-x": {context: 77}}\n')
    await house.post("/api/config/reload", None)
    read = await house.get(GPT)
    assert (read["context"], read["origin"], read["read_only"]) == (77, "file", True)
    answers = [
        await house.post("/api/models", {"id": "alpha/gpt-x"}),
        await house.ask("PUT", GPT, {}),
        await house.ask("PATCH", GPT, {}),
        await house.ask("DELETE", GPT),
    ]
    assert [(a.status, "troyproxy.yaml" in a.json()["error"]["message"]) for a in answers] == [(409, True)] * 4


async def test_a_spec_is_overridden_once_however_it_is_spelt(house: House) -> None:
    await house.post("/api/models", {"id": "alpha/gpt-x"})
    answer = await house.post("/api/models", {"id": "ALPHA/gpt-x"})
    assert (answer.status, answer.json()["error"]["code"]) == (409, "conflict")


async def test_an_unknown_provider_is_accepted_with_a_warning(house: House) -> None:
    answer = await house.post("/api/models", {"id": "later/m", "tools": True})
    body = answer.json()
    assert (answer.status, body["effective"], "later is no configured provider" in body["warnings"][0]) == (
        201,
        None,
        True,
    )
    assert (await house.get("/api/models/later/m"))["tools"] is True


async def test_what_is_not_there_is_404(house: House) -> None:
    answers = [
        await house.ask("GET", "/api/models/alpha/none"),
        await house.ask("PATCH", GPT, {}),
        await house.ask("DELETE", "/api/models/none"),
    ]
    assert [(a.status, a.json()["error"]["code"]) for a in answers] == [(404, "not_found")] * 3


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({}, "id"),
        ({"id": "bare"}, "id"),
        ({"id": "alpha/"}, "id"),
        ({"id": "alpha/ x"}, "id"),
        ({"id": "auto/x"}, "id"),
        ({"id": "a\n/x"}, "id"),
        ({"id": "alpha/" + "x" * 500}, "id"),
        ({"id": 7}, "id"),
        ({"id": "alpha/gpt-x", "context": 0}, "context"),
        ({"id": "alpha/gpt-x", "context": "big"}, "context"),
        ({"id": "alpha/gpt-x", "tools": "yes"}, "tools"),
        ({"id": "alpha/gpt-x", "price": {"input": -1}}, "price.input"),
        ({"id": "alpha/gpt-x", "price": {"output": 10**400}}, "price.output"),
        ({"id": "alpha/gpt-x", "tool_calls": "often"}, "tool_calls"),
        ({"id": "alpha/gpt-x", "efforts": ["some"]}, "efforts[0]"),
        ({"id": "alpha/gpt-x", "aliases": ["x"] * 101}, "aliases"),
        ({"id": "alpha/gpt-x", "colour": "red"}, "colour"),
    ],
)
async def test_what_is_not_valid_is_422_and_names_the_field(house: House, raw: dict[str, object], field: str) -> None:
    answer = await house.post("/api/models", raw)
    assert (answer.status, fields_of(answer.json())) == (422, [field])


async def test_the_id_stays(house: House) -> None:
    await house.ask("PUT", GPT, {"id": "alpha/gpt-x"})
    for given in ("alpha/bare", 7):
        answer = await house.ask("PATCH", GPT, {"id": given})
        assert (answer.status, fields_of(answer.json())) == (422, ["id"])


async def test_a_database_that_is_down_is_503(house: House) -> None:
    with patch.object(house.store.models, "entries", side_effect=StoreUnavailable("the database is down")):
        answer = await house.ask("GET", "/api/models")
    assert (answer.status, answer.json()["error"]["code"]) == (503, "store_unavailable")
