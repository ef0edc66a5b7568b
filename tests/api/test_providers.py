"""``/api/providers``."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain, repeat
from unittest.mock import patch

import pytest

from tests.api.house import TOKEN, House, fields_of
from troyproxy.catalog.providers import StoredProvider
from troyproxy.errors import StoreUnavailable
from troyproxy.settings.load import load

pytestmark = pytest.mark.anyio

SECRET = "sk-never-to-be-shown-4711"
URL = "http://127.0.0.1:9/v1"
OWN = {"id": "own", "base_url": URL, "auth": "none", "default_model": "m"}
PLACE = "/api/providers/own"


async def key_of(house: House, connection_id: str = "own#a") -> str | None:
    """Return the key that is stored."""
    held = await house.store.connections.find(connection_id)
    assert held is not None
    return None if held.api_key is None else held.api_key.reveal()


async def test_a_created_provider_is_answered_as_it_was_written_and_with_what_is_in_force(house: House) -> None:
    written = {
        "id": "own",
        "base_url": f"{URL}/",
        "auth": {"header": "X-Key-Of-Ours"},
        "aliases": ["mine"],
        "headers": {"X-Team": "search"},
        "query": {"version": "2"},
        "timeouts": {"connect_s": 1.5},
        "accepts": {"stream_options": False},
        "models": {"m": {"tools": True, "price": {"input": 0.5}}},
    }
    made = await house.post("/api/providers", {**written, "connections": [{"name": "a", "api_key": SECRET}]})
    body = made.json()
    effective = body.pop("effective")
    assert body.pop("created_at") > 0
    assert (made.status, body) == (
        201,
        {
            **written,
            "origin": "database",
            "read_only": False,
            "connected": True,
            "account_count": 1,
            "connection_count": 1,
            "model_count": 1,
            "version": 1,
            "warnings": [],
        },
    )
    assert (effective["base_url"], effective["auth"], effective["headers"], effective["query"]) == (
        URL,
        {"header": "x-key-of-ours"},
        {"x-team": "search"},
        {"version": "2"},
    )


async def test_its_location_and_version_are_in_the_headers(house: House) -> None:
    made = await house.post("/api/providers", OWN)
    assert (made.header("location"), made.header("etag")) == (PLACE, '"1"')


async def test_the_next_request_goes_to_it(house: House) -> None:
    before = await house.chat("own/m")
    await house.post("/api/providers", OWN)
    after = await house.chat("own/m")
    assert (before.status, after.header("x-troy-trail")) == (404, "own/m#own-keyless=transient")


async def test_a_removed_provider_is_not_found_by_the_next_request(house: House) -> None:
    await house.post("/api/providers", OWN)
    gone = await house.ask("DELETE", PLACE)
    assert gone.json() == {"id": "own", "deleted": True, "warnings": []}
    assert ((await house.ask("GET", PLACE)).status, (await house.chat("own/m")).status) == (404, 404)


async def test_a_built_in_provider_is_configured_by_its_id_and_waits_for_a_key(house: House) -> None:
    made = (await house.post("/api/providers", {"id": "groq", "default_model": "x"})).json()
    assert (made["effective"]["base_url"], made["effective"]["default_model"]) == (
        "https://api.groq.com/openai/v1",
        "x",
    )
    assert (made["connected"], made["warnings"]) == (
        False,
        ["it has no account with a key, so no request is sent to it: POST /api/connections"],
    )


async def test_what_a_connection_configured_may_be_written_over(house: House) -> None:
    await house.post("/api/connections", {"provider": "groq", "name": "a", "api_key": SECRET})
    changed = await house.ask("PATCH", "/api/providers/groq", {"default_model": "x"}, if_match='"0"')
    assert (changed.status, changed.json()["version"], await key_of(house, "groq#a")) == (200, 1, SECRET)
    assert (await house.post("/api/providers", {"id": "groq"})).status == 409


async def test_what_was_read_can_be_put_back(house: House) -> None:
    made = (await house.post("/api/providers", {**OWN, "headers": {"x-a": "b"}})).json()
    again = await house.ask("PUT", PLACE, made)
    expected = {**made, "version": 2}
    assert (again.status, again.json()) == (200, expected)


async def test_replacing_puts_the_whole_provider_anew(house: House) -> None:
    await house.post("/api/providers", {**OWN, "aliases": ["mine"]})
    body = (await house.ask("PUT", PLACE, {"base_url": URL, "auth": "none"})).json()
    assert (body["effective"]["aliases"], "default_model" in body, body["version"]) == ([], False, 2)


async def test_changing_keeps_what_is_not_given_and_null_takes_away(house: House) -> None:
    await house.post("/api/providers", {**OWN, "aliases": ["mine"]})
    body = (await house.ask("PATCH", PLACE, {"default_model": None, "max_inflight": 3})).json()
    assert (body["aliases"], "default_model" in body, body["max_inflight"]) == (["mine"], False, 3)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("value", ["other", ["own"]])
async def test_the_id_cannot_be_changed(house: House, method: str, value: object) -> None:
    await house.post("/api/providers", OWN)
    answer = await house.ask(method, PLACE, {**OWN, "id": value})
    assert (answer.status, fields_of(answer.json())) == (422, ["id"])


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(("tag", "status"), [('"1"', 412), ('"2"', 200), ('W/"2"', 200), ("*", 200), ('"x"', 412)])
async def test_if_match_guards_against_lost_writes(house: House, method: str, tag: str, status: int) -> None:
    await house.post("/api/providers", OWN)
    await house.ask("PUT", PLACE, OWN)
    assert (await house.ask(method, PLACE, OWN, if_match=tag)).status == status


@pytest.mark.parametrize(("headers", "status"), [({}, 200), ({"if_match": '"1"'}, 412)])
async def test_a_change_is_never_laid_over_what_somebody_else_just_wrote(
    house: House, headers: dict[str, str], status: int
) -> None:
    await house.post("/api/providers", OWN)
    stale = await house.store.providers.list()
    await house.store.providers.replace(replace(stale[0], config={**stale[0].config, "default_model": "theirs"}))
    seen = chain([stale] * 2, repeat(await house.store.providers.list()))
    with patch.object(house.store.providers, "list", side_effect=seen):
        answer = await house.ask("PATCH", PLACE, {"max_inflight": 3}, **headers)
    assert answer.status == status
    assert (await house.get(PLACE))["default_model"] == "theirs"


# --- what is listed -------------------------------------------------------------------------------------------------


async def test_the_list_has_every_provider_with_its_origin(house: House) -> None:
    await house.post("/api/providers", OWN)
    listed = (await house.get("/api/providers"))["data"]
    assert [(p["id"], p["origin"], p["read_only"], p["connected"], p["account_count"]) for p in listed] == [
        ("alpha", "file", True, True, 2),
        ("demo", "builtin", True, True, 0),
        ("local", "file", True, True, 0),
        ("own", "database", False, True, 0),
    ]


async def test_the_list_comes_in_pages(house: House) -> None:
    first = await house.get("/api/providers?limit=2")
    second = await house.get(f"/api/providers?limit=2&cursor={first['next_cursor']}")
    assert ([p["id"] for p in second["data"]], second["next_cursor"]) == (["local"], None)


async def test_fixed_values_of_the_file_are_not_shown(house: House) -> None:
    secret = "  local: {headers: {x-a: hush-hush}, query: {k: hush-hush}, proxy: 'http://u:hush-hush@p',"
    house.file.write_text(house.file.read_text().replace("  local: {", secret), encoding="utf-8")
    await house.post("/api/config/reload", {})
    shown = await house.get("/api/providers/local")
    assert (shown["effective"]["headers"], shown["effective"]["query"]) == ({"x-a": "***"}, {"k": "***"})
    assert "hush" not in json.dumps(shown)


async def test_a_row_that_cannot_be_used_is_shown_and_can_be_put_right(house: House) -> None:
    await house.store.providers.add(StoredProvider("own", {"colour": "red"}))
    shown = await house.get(PLACE)
    mended = await house.ask("PUT", PLACE, OWN)
    assert (shown["connected"], shown["colour"], mended.status, mended.json()["connected"]) == (False, "red", 200, True)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("alpha", "the provider alpha belongs to the config file troyproxy.yaml; change it there"),
        ("demo", "the provider demo is built in and cannot be changed"),
    ],
)
async def test_what_lives_elsewhere_is_changed_there(house: House, method: str, name: str, told: str) -> None:
    answer = await house.ask(method, f"/api/providers/{name}", {})
    assert (answer.status, answer.json()["error"]["message"]) == (409, told)


async def test_what_lives_elsewhere_cannot_be_created(house: House) -> None:
    assert (await house.post("/api/providers", {**OWN, "id": "alpha"})).status == 409


async def test_a_provider_of_the_environment_names_its_variable(house: House) -> None:
    env = {"TROY_ADMIN_TOKEN": TOKEN, "GROQ_API_KEY": SECRET}
    with patch("tests.api.house.load", return_value=load(env, config=house.file)):
        await house.post("/api/config/reload", {})
    answer = await house.post("/api/providers", {"id": "groq"})
    assert (answer.status, answer.json()["error"]["message"]) == (
        409,
        "the provider groq comes from the environment (GROQ_API_KEY); change it there",
    )


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"id": None}, "id"),
        ({"id": "Own"}, "id"),
        ({"id": "auto"}, "id"),
        ({"id": 7}, "id"),
        ({"base_url": None}, "base_url"),
        ({"base_url": "env:BASE"}, "base_url"),
        ({"base_url": "ftp://h/v1"}, "base_url"),
        ({"base_url": f"http://user:{SECRET}@h/v1"}, "base_url"),
        ({"app": "package:app"}, "app"),
        ({"accounts": []}, "accounts"),
        ({"auth": "digest"}, "auth"),
        ({"headers": {"authorization": "plain"}}, "headers.authorization"),
        ({"headers": {"x-a": f"Bearer {SECRET}"}}, "headers.x-a"),
        ({"headers": {"x-a": "env:X"}}, "headers.x-a"),
        ({"headers": {"host": "h"}}, "headers.host"),
        ({"query": {"key": "plain"}}, "query.key"),
        ({"query": {"v": float("inf")}}, "query.v"),
        ({"proxy": f"http://user:{SECRET}@p"}, "proxy"),
        ({"ca_file": "/no/such/file"}, "ca_file"),
        ({"ca_file": "x" * 400}, "ca_file"),
        ({"timeouts": {"idle_s": 0}}, "timeouts.idle_s"),
        ({"models": {"m": {"tools": "yes"}}}, "models.m.tools"),
        ({"models": {" ": {}}}, 'models[" "]'),
        ({"aliases": ["A"]}, "aliases[0]"),
        ({"colour": "red"}, "colour"),
        ({"connections": {}}, "connections"),
        ({"connections": ["a"]}, "connections[0]"),
        ({"connections": [{"name": "a", "api_key": "env:X"}]}, "connections[0].api_key"),
        ({"connections": [{"name": "a", "priority": "x"}]}, "connections[0].priority"),
        ({"connections": [{"name": "a", "provider": "groq"}]}, "connections[0].provider"),
        ({"connections": [{"name": "a"}, {"name": "A"}]}, "connections[1]"),
        ({"auth": "bearer", "connections": [{"name": "a"}]}, "connections[0].api_key"),
    ],
)
async def test_what_is_wrong_is_named_by_its_field_and_no_secret_is_told(
    house: House, given: dict[str, object], field: str
) -> None:
    answer = await house.post("/api/providers", {**OWN, **given})
    assert (answer.status, fields_of(answer.json())) == (422, [field])
    assert SECRET not in answer.body.decode()


async def test_another_name_of_a_built_in_provider_is_said(house: House) -> None:
    answer = await house.post("/api/providers", {"id": "claude"})
    assert "claude is another name of the built-in anthropic" in answer.body.decode()


@pytest.mark.parametrize(("given", "param"), [({"id": "mine"}, "id"), ({"id": "b", "aliases": ["own"]}, "aliases")])
async def test_a_name_means_one_provider(house: House, given: dict[str, object], param: str) -> None:
    await house.post("/api/providers", {**OWN, "aliases": ["mine"]})
    answer = await house.post("/api/providers", {**OWN, **given})
    assert (answer.status, answer.json()["error"]["param"]) == (409, param)


async def test_a_combo_that_would_read_as_its_model_is_named(house: House) -> None:
    await house.post("/api/combos", {"name": "Own/fast", "members": ["demo/ok"]})
    answer = await house.post("/api/providers", OWN)
    assert (answer.status, "Own/fast" in answer.json()["error"]["message"]) == (409, True)


async def test_a_database_that_is_down_is_503(house: House) -> None:
    with patch.object(house.store.providers, "list", side_effect=StoreUnavailable("down")):
        assert (await house.ask("GET", "/api/providers")).status == 503


async def test_a_broken_file_keeps_nothing_from_being_stored(house: House) -> None:
    house.file.write_text("providers: [", encoding="utf-8")
    made = await house.post("/api/providers", OWN)
    assert (made.status, "stored, but not in force yet" in made.json()["warnings"][0]) == (201, True)
