"""``/api/providers``: what becomes of the connections of a provider, and of their keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.house import House, fields_of
from troyproxy.catalog.providers import StoredProvider

pytestmark = pytest.mark.anyio

SECRET = "sk-never-to-be-shown-4711"
URL = "http://127.0.0.1:9/v1"
OWN = {"id": "own", "base_url": URL, "auth": "none", "default_model": "m"}
KEYED = {"id": "own", "base_url": URL, "connections": [{"name": "a", "api_key": SECRET}]}
PLACE = "/api/providers/own"


async def key_of(house: House, connection_id: str = "own#a") -> str | None:
    """Return the key that is stored."""
    held = await house.store.connections.find(connection_id)
    assert held is not None
    return None if held.api_key is None else held.api_key.reveal()


MOVED = "the address or the way to authenticate changed, so stored keys were dropped: a; give them anew"
NO_ACCOUNT = "it has no account with a key, so no request is sent to it: POST /api/connections"


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(
    "change",
    [
        {"base_url": "http://127.0.0.1:10/v1"},
        {"auth": "x-api-key"},
        {"headers": {"x-a": "b"}},
        {"proxy": "http://127.0.0.1:3128"},
    ],
)
async def test_a_key_that_was_given_for_one_target_never_goes_to_another(
    house: House, method: str, change: dict[str, object]
) -> None:
    await house.post("/api/providers", KEYED)
    answer = await house.ask(method, PLACE, {"base_url": URL, **change})
    assert (answer.json()["warnings"], answer.json()["connected"]) == ([MOVED, NO_ACCOUNT], False)
    assert await key_of(house) is None


async def test_a_ca_of_its_own_is_another_target(house: House, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("x", encoding="utf-8")
    await house.post("/api/providers", KEYED)
    await house.ask("PATCH", PLACE, {"ca_file": str(tmp_path / "ca.pem")})
    assert await key_of(house) is None


@pytest.mark.parametrize(
    "change", [{"base_url": f"{URL}/"}, {"default_model": "x"}, {"query": {"v": "1"}}, {"headers": {}}, {"leak": "off"}]
)
async def test_any_other_change_keeps_the_keys(house: House, change: dict[str, object]) -> None:
    await house.post("/api/providers", KEYED)
    answer = await house.ask("PATCH", PLACE, change)
    assert (answer.status, answer.json()["warnings"], await key_of(house)) == (200, [], SECRET)


async def test_keys_that_come_with_the_change_are_the_new_ones(house: House) -> None:
    await house.post("/api/providers", KEYED)
    new = {"base_url": "http://127.0.0.1:10/v1", "connections": [{"name": "A", "api_key": "sk-new"}]}
    answer = await house.ask("PATCH", PLACE, new)
    assert (answer.json()["warnings"], answer.json()["connected"], await key_of(house)) == ([], True, "sk-new")


async def test_a_connection_that_comes_without_a_key_keeps_none_at_another_target(house: House) -> None:
    await house.post("/api/providers", KEYED)
    new = {"base_url": "http://127.0.0.1:10/v1", "connections": [{"name": "a", "tier": "pro"}]}
    answer = await house.ask("PATCH", PLACE, new)
    assert (answer.json()["warnings"], await key_of(house)) == ([MOVED, NO_ACCOUNT], None)


async def test_a_connection_that_comes_again_is_changed_and_a_new_one_is_added(house: House) -> None:
    await house.post("/api/providers", KEYED)
    new = [{"name": "a", "tier": "pro", "id": "own#a", "version": 1}, {"name": "b", "api_key": "sk-other"}]
    answer = await house.ask("PATCH", PLACE, {"connections": new})
    listed = (await house.get("/api/connections?provider=own"))["data"]
    assert (answer.json()["connection_count"], [(c["name"], c["tier"]) for c in listed]) == (
        2,
        [("a", "pro"), ("b", None)],
    )
    assert await key_of(house) == SECRET


async def test_a_built_in_provider_that_is_sent_elsewhere_loses_the_keys_that_configured_it(house: House) -> None:
    await house.post("/api/connections", {"provider": "groq", "name": "a", "api_key": SECRET})
    answer = await house.post("/api/providers", {"id": "groq", "base_url": "http://127.0.0.1:9/v1"})
    assert (answer.json()["warnings"], await key_of(house, "groq#a")) == ([MOVED, NO_ACCOUNT], None)


async def test_a_row_that_cannot_be_used_gives_its_keys_to_nobody_that_it_is_mended_into(house: House) -> None:
    await house.post("/api/providers", KEYED)
    held = (await house.store.providers.list())[0]
    await house.store.providers.replace(StoredProvider("own", {**held.config, "colour": "red"}))
    await house.ask("PUT", PLACE, {"base_url": URL})
    assert await key_of(house) is None


async def test_a_provider_with_connections_is_not_removed_unless_they_may_go_too(house: House) -> None:
    await house.post("/api/providers", KEYED)
    kept = await house.ask("DELETE", PLACE)
    gone = await house.ask("DELETE", f"{PLACE}?cascade=true")
    assert (kept.status, "own has connections: a;" in kept.body.decode(), gone.status) == (409, True, 200)
    assert await house.store.connections.list() == []


async def test_what_connections_alone_configured_goes_with_them(house: House) -> None:
    await house.post("/api/connections", {"provider": "groq", "name": "a", "api_key": SECRET})
    gone = await house.ask("DELETE", "/api/providers/groq?cascade=true")
    assert (gone.status, (await house.ask("GET", "/api/providers/groq")).status) == (200, 404)


@pytest.mark.parametrize("value", ["yes", "1", ""])
async def test_cascade_is_true_or_false(house: House, value: str) -> None:
    await house.post("/api/providers", OWN)
    answer = await house.ask("DELETE", f"{PLACE}?cascade={value}")
    assert (answer.status, fields_of(answer.json())) == (422, ["cascade"])


async def test_combos_that_name_a_removed_provider_stay_and_are_named(house: House) -> None:
    await house.post("/api/providers", {**OWN, "aliases": ["mine"]})
    await house.post("/api/combos", {"name": "one", "members": ["mine/m", "demo/ok"]})
    gone = await house.ask("DELETE", PLACE)
    answer = await house.chat("one")
    assert gone.json()["warnings"] == ["the combo 'one' names own: that member is skipped"]
    assert (answer.status, answer.header("x-troy-skipped")) == (200, "mine/m=unknown-provider")


async def test_no_answer_shows_a_key(house: House, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    answers = [
        await house.post("/api/providers", KEYED),
        await house.post("/api/providers", KEYED),
        await house.post("/api/providers", {"id": "b", "connections": [{"name": "a", "api_key": SECRET}]}),
        await house.ask("PUT", PLACE, {**KEYED, "headers": {"x-a": SECRET}}),
        await house.ask("PATCH", PLACE, {"connections": [{"name": SECRET, "api_key": SECRET, "tier": 7}]}),
        await house.ask("GET", PLACE),
        await house.ask("GET", "/api/providers"),
        await house.ask("GET", "/api/connections"),
        await house.chat("own/m"),
        await house.ask("DELETE", PLACE),
    ]
    told = b"".join(answer.body for answer in answers).decode() + caplog.text
    assert [part for part in (SECRET, SECRET[:8], SECRET[-6:]) if part in told] == []
