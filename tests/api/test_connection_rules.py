"""``/api/connections``: what is refused."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from tests.api.house import TOKEN, House, fields_of
from troyproxy.settings.load import load

pytestmark = pytest.mark.anyio

SECRET = "gsk-never-to-be-shown-4711"
ONE = {"provider": "groq", "name": "a", "api_key": SECRET}


@pytest.mark.parametrize("name", ["a", "A"])
async def test_a_name_is_taken_once_in_any_case(house: House, name: str) -> None:
    await house.post("/api/connections", ONE)
    answer = await house.post("/api/connections", {**ONE, "name": name})
    assert (answer.status, answer.json()["error"]["code"]) == (409, "conflict")


@pytest.mark.parametrize("name", ["team-a", "TEAM-A"])
async def test_a_name_of_the_file_is_taken_and_the_file_is_named(house: House, name: str) -> None:
    answer = await house.post("/api/connections", {**ONE, "provider": "alpha", "name": name})
    assert (answer.status, "belongs to the config file troyproxy.yaml" in answer.body.decode()) == (409, True)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_an_account_of_the_file_is_changed_there(house: House, method: str) -> None:
    answer = await house.ask(method, "/api/connections/alpha%23team-a", {})
    assert answer.status == 409
    assert answer.json()["error"]["message"] == (
        "the account alpha#team-a belongs to the config file troyproxy.yaml; change it there"
    )


async def test_an_account_of_the_environment_is_shown_and_its_variable_named(house: House) -> None:
    env = {"TROY_ADMIN_TOKEN": TOKEN, "GEMINI_API_KEY": SECRET}
    with patch("tests.api.house.load", return_value=load(env, config=house.file)):
        await house.post("/api/config/reload", {})
    shown = await house.get("/api/connections/google%23env")
    answer = await house.ask("DELETE", "/api/connections/google%23env")
    assert (shown["origin"], answer.status) == ("environment", 409)
    assert "(GOOGLE_GENERATIVE_AI_API_KEY or GEMINI_API_KEY)" in answer.json()["error"]["message"]


async def test_a_stored_connection_that_the_file_hides_is_not_listed(house: House) -> None:
    await house.post("/api/connections", {**ONE, "provider": "alpha", "name": "c"})
    house.file.write_text(house.file.read_text().replace("name: team-b", "name: c"), encoding="utf-8")
    await house.post("/api/config/reload", {})
    shown = await house.get("/api/connections/alpha%23c")
    assert (shown["origin"], (await house.ask("DELETE", "/api/connections/alpha%23c")).status) == ("file", 409)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"provider": None}, "provider"),
        ({"provider": "nowhere"}, "provider"),
        ({"provider": ["groq"]}, "provider"),
        ({"name": None}, "name"),
        ({"name": "a b"}, "name"),
        ({"name": "a#b"}, "name"),
        ({"api_key": None}, "api_key"),
        ({"api_key": "env:GROQ_API_KEY"}, "api_key"),
        ({"api_key": "gsk\nx"}, "api_key"),
        ({"api_key": "x" * 9000}, "api_key"),
        ({"id": "other"}, "id"),
        ({"priority": 1.5}, "priority"),
        ({"models": "llama-*"}, "models"),
        ({"models": ["a", 7]}, "models[1]"),
        ({"quota": {"requests": 1}}, "quota.per"),
        ({"quota": {"per": "day"}}, "quota"),
        ({"quota_reset_interval_s": 0}, "quota_reset_interval_s"),
        ({"max_inflight": 0}, "max_inflight"),
        ({"token_expires_at": "soon"}, "token_expires_at"),
        ({"active": "yes"}, "active"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_what_is_wrong_is_named_by_its_field(house: House, given: dict[str, object], field: str) -> None:
    answer = await house.post("/api/connections", {**ONE, **given})
    assert (answer.status, fields_of(answer.json())) == (422, [field])


async def test_everything_that_is_wrong_is_said_at_once(house: House) -> None:
    answer = await house.post("/api/connections", {"provider": "nowhere", "priority": "x"})
    assert sorted(fields_of(answer.json())) == ["name", "priority", "provider"]
