"""``/api/connections``."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, repeat
from unittest.mock import patch

import pytest

from tests.api.house import House, fields_of
from troyproxy.errors import StoreUnavailable

pytestmark = pytest.mark.anyio

SECRET = "gsk-never-to-be-shown-4711"
ONE = {"provider": "groq", "name": "a", "api_key": SECRET}
PLACE = "/api/connections/groq%23a"


async def key_of(house: House, connection_id: str = "groq#a") -> str | None:
    """Return the key that is stored."""
    held = await house.store.connections.find(connection_id)
    assert held is not None
    return None if held.api_key is None else held.api_key.reveal()


async def test_a_created_connection_is_answered_as_it_is_stored_without_its_key(house: House) -> None:
    fields = {
        "models": ["llama-*"],
        "default_model": "llama-3.3-70b-versatile",
        "tier": "pro",
        "priority": -2,
        "quota": {"usd": 2.5, "per": "day"},
        "quota_reset_interval_s": 3600.0,
        "max_inflight": 4,
        "token_expires_at": 4_000_000_000.0,
        "active": False,
    }
    made = await house.post("/api/connections", {**ONE, **fields})
    body = made.json()
    assert body.pop("created_at") > 0
    assert (made.status, body) == (
        201,
        {
            "id": "groq#a",
            "provider": "groq",
            "name": "a",
            **fields,
            "has_api_key": True,
            "origin": "database",
            "read_only": False,
            "version": 1,
            "warnings": [],
        },
    )


async def test_its_location_and_version_are_in_the_headers(house: House) -> None:
    made = await house.post("/api/connections", ONE)
    assert (made.header("location"), made.header("etag")) == (PLACE, '"1"')
    assert (await house.get(PLACE))["id"] == "groq#a"


async def test_a_connection_configures_its_built_in_provider_at_once(house: House) -> None:
    before = await house.chat("groq/m")
    await house.post("/api/connections", ONE)
    (groq,) = [entry for entry in (await house.get("/api/providers"))["data"] if entry["id"] == "groq"]
    assert (before.status, groq["connected"], groq["connection_count"], groq["version"]) == (404, True, 1, 0)
    assert "groq/llama-3.3-70b-versatile" in {model["id"] for model in await models(house)}


async def models(house: House) -> list[dict[str, object]]:
    listed = await house.get("/v1/models", authorization="Bearer client-key-0123456789")
    found: list[dict[str, object]] = listed["data"]
    return found


async def test_a_provider_goes_by_its_alias_too(house: House) -> None:
    made = await house.post("/api/connections", {**ONE, "provider": "claude"})
    again = await house.post("/api/connections", {**ONE, "provider": "claude", "name": "b"})
    listed = await house.get("/api/connections?provider=claude")
    assert (made.json()["id"], again.json()["id"]) == ("anthropic#a", "anthropic#b")
    assert [entry["id"] for entry in listed["data"]] == ["anthropic#a", "anthropic#b"]


async def test_a_removed_connection_is_not_used_any_more(house: House) -> None:
    await house.post("/api/connections", ONE)
    gone = await house.ask("DELETE", PLACE)
    assert gone.json() == {"id": "groq#a", "deleted": True, "warnings": []}
    assert ((await house.ask("GET", PLACE)).status, (await house.chat("groq/m")).status) == (404, 404)


async def test_an_account_that_was_removed_and_added_again_starts_without_locks(house: House) -> None:
    new = {"provider": "alpha", "name": "c", "api_key": SECRET}
    await house.post("/api/connections", new)
    await house.ask("DELETE", "/api/connections/alpha%23c")
    await house.post("/api/connections", {**new, "name": "d"})
    listed = await house.get("/api/connections?provider=alpha")
    assert [entry["name"] for entry in listed["data"]] == ["d", "team-a", "team-b"]


async def test_what_was_read_can_be_put_back_and_the_key_stays(house: House) -> None:
    made = (await house.post("/api/connections", ONE)).json()
    again = await house.ask("PUT", PLACE, made)
    assert (again.status, again.json()["version"], await key_of(house)) == (200, 2, SECRET)


async def test_replacing_takes_away_what_is_not_given_but_the_key_and_the_name(house: House) -> None:
    await house.post("/api/connections", {**ONE, "tier": "pro", "priority": 3})
    body = (await house.ask("PUT", PLACE, {"priority": 1})).json()
    assert (body["name"], body["tier"], body["priority"], await key_of(house)) == ("a", None, 1, SECRET)


async def test_changing_keeps_what_is_not_given(house: House) -> None:
    await house.post("/api/connections", {**ONE, "tier": "pro", "quota": {"requests": 5, "per": "hour"}})
    body = (await house.ask("PATCH", PLACE, {"priority": 7, "quota": None})).json()
    assert (body["tier"], body["priority"], body["quota"], await key_of(house)) == ("pro", 7, None, SECRET)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_a_new_key_takes_the_place_of_the_old_one(house: House, method: str) -> None:
    await house.post("/api/connections", ONE)
    await house.ask(method, PLACE, {"api_key": "gsk-another"})
    assert await key_of(house) == "gsk-another"


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_null_takes_the_key_away_and_the_connection_out_of_use(house: House, method: str) -> None:
    await house.post("/api/connections", ONE)
    body = (await house.ask(method, PLACE, {"api_key": None})).json()
    groq = await house.get("/api/providers/groq")
    assert (body["has_api_key"], body["warnings"]) == (False, ["it has no api_key: it is not used until it gets one"])
    assert (await key_of(house), groq["connected"], groq["account_count"]) == (None, False, 0)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(
    ("field", "value"), [("name", "b"), ("provider", "openai"), ("id", "groq#b"), ("id", []), ("name", {"a": 1})]
)
async def test_what_others_go_by_cannot_be_changed(house: House, method: str, field: str, value: object) -> None:
    await house.post("/api/connections", ONE)
    answer = await house.ask(method, PLACE, {field: value})
    assert (answer.status, fields_of(answer.json())) == (422, [field])


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(("tag", "status"), [('"1"', 412), ('"2"', 200), ('W/"2"', 200), ("*", 200), ('"x"', 412)])
async def test_if_match_guards_against_lost_writes(house: House, method: str, tag: str, status: int) -> None:
    await house.post("/api/connections", ONE)
    await house.ask("PUT", PLACE, {})
    assert (await house.ask(method, PLACE, {}, if_match=tag)).status == status


@pytest.mark.parametrize(("headers", "status"), [({}, 200), ({"if_match": '"1"'}, 412)])
async def test_a_change_is_never_laid_over_what_somebody_else_just_wrote(
    house: House, headers: dict[str, str], status: int
) -> None:
    await house.post("/api/connections", ONE)
    stale = await house.store.connections.list()
    await house.store.connections.replace(replace(stale[0], priority=7))
    seen = chain([stale] * 2, repeat(await house.store.connections.list()))
    with patch.object(house.store.connections, "list", side_effect=seen):
        answer = await house.ask("PATCH", PLACE, {"tier": "pro"}, **headers)
    assert answer.status == status
    assert (await house.get(PLACE))["priority"] == 7


async def test_the_list_has_every_account_with_its_origin(house: House) -> None:
    await house.post("/api/connections", ONE)
    listed = (await house.get("/api/connections"))["data"]
    assert [(c["id"], c["origin"], c["read_only"], c["version"], c["has_api_key"]) for c in listed] == [
        ("alpha#team-a", "file", True, 0, True),
        ("alpha#team-b", "file", True, 0, True),
        ("groq#a", "database", False, 1, True),
    ]


async def test_the_list_comes_in_pages(house: House) -> None:
    await house.post("/api/connections", ONE)
    first = await house.get("/api/connections?limit=2")
    second = await house.get(f"/api/connections?limit=2&cursor={first['next_cursor']}")
    assert [entry["id"] for entry in second["data"]] == ["groq#a"]
    assert second["next_cursor"] is None


async def test_the_list_of_nobody_is_empty(house: House) -> None:
    assert (await house.get("/api/connections?provider=nowhere"))["data"] == []


async def test_a_provider_that_takes_no_credential_needs_no_key(house: House) -> None:
    made = await house.post("/api/connections", {"provider": "local", "name": "a"})
    keyed = await house.post("/api/connections", {"provider": "local", "name": "b", "api_key": SECRET})
    assert (made.status, made.json()["warnings"]) == (201, [])
    assert keyed.json()["warnings"] == ["local takes no credential: the api_key is kept, and not sent"]


async def test_a_token_that_has_expired_carries_no_request(house: House) -> None:
    made = await house.post("/api/connections", {**ONE, "token_expires_at": house.clock.now() - 1})
    answer = await house.chat("groq/m")
    assert made.json()["warnings"] == ["the token has expired: no request is sent with it"]
    assert (answer.status, answer.header("x-troy-skipped")) == (503, "groq/m=no-account")


async def test_a_token_is_not_used_from_the_second_on_in_which_it_expires(house: House) -> None:
    await house.post("/api/connections", {**ONE, "token_expires_at": house.clock.now() + 60})
    house.clock.move(60)
    assert (await house.chat("groq/m")).header("x-troy-skipped") == "groq/m=no-account"


async def test_a_connection_that_is_not_active_carries_no_request(house: House) -> None:
    await house.post("/api/connections", {**ONE, "active": False})
    assert (await house.chat("groq/m")).header("x-troy-skipped") == "groq/m=disabled"


async def test_a_connection_that_another_process_wrote_is_seen_at_once(house: House) -> None:
    await house.post("/api/connections", ONE)
    await house.store.connections.remove("groq#a")
    assert (await house.ask("GET", PLACE)).status == 404


async def test_a_broken_file_keeps_nothing_from_being_stored(house: House) -> None:
    house.file.write_text("providers: [", encoding="utf-8")
    made = await house.post("/api/connections", ONE)
    assert (made.status, "stored, but not in force yet" in made.json()["warnings"][0]) == (201, True)


async def test_a_database_that_is_down_is_503(house: House) -> None:
    with patch.object(house.store.connections, "list", side_effect=StoreUnavailable("down")):
        assert (await house.post("/api/connections", ONE)).status == 503


async def test_a_combo_that_would_read_as_a_model_of_a_new_provider_is_named(house: House) -> None:
    await house.post("/api/combos", {"name": "groq/fast", "members": ["demo/ok"]})
    answer = await house.post("/api/connections", ONE)
    assert (answer.status, "groq/fast" in answer.json()["error"]["message"]) == (409, True)


async def test_no_answer_shows_a_key(house: House, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    answers = [
        await house.post("/api/connections", ONE),
        await house.post("/api/connections", ONE),
        await house.post("/api/connections", {**ONE, "name": "b", "priority": "x"}),
        await house.post("/api/connections", {**ONE, "name": "b", "api_key": [SECRET]}),
        await house.post("/api/connections", {**ONE, "name": "b", "api_key": f"env:{SECRET}"}),
        await house.ask("PATCH", PLACE, {"api_key": f" {SECRET}"}),
        await house.ask("PATCH", PLACE, {"api_key": SECRET, "active": False}),
        await house.ask("GET", PLACE),
        await house.ask("GET", "/api/connections"),
        await house.ask("GET", "/api/providers/groq"),
        await house.ask("GET", "/api/status"),
        await house.chat("groq/m"),
        await house.ask("DELETE", PLACE),
    ]
    told = b"".join(answer.body for answer in answers).decode() + caplog.text
    assert [part for part in (SECRET, SECRET[:8], SECRET[-6:], "alpha-secret") if part in told] == []
