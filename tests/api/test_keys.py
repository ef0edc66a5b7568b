"""``/api/keys``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import pytest

from tests.api.house import House, fields_of
from troyproxy.errors import StoreUnavailable

pytestmark = pytest.mark.anyio

SECRET = re.compile(r"sk-troy-[0-9a-f]{48}")


async def made(house: House, **fields: object) -> dict[str, Any]:
    """Make a key called ci."""
    answer = await house.post("/api/keys", {"name": "ci", **fields})
    assert answer.status == 201, answer.body
    found: dict[str, Any] = answer.json()
    return found


async def opens(house: House, secret: str) -> int:
    """Return the status of a model list with this key."""
    return (await house.ask("GET", "/v1/models", authorization=f"Bearer {secret}")).status


async def test_a_created_key_is_answered_with_its_secret(house: House) -> None:
    key = await made(house, models=["daily", "auto/*"], provider="alpha", limits={"requests_per_minute": 60})
    assert SECRET.fullmatch(key.pop("key"))
    assert re.fullmatch("key_[0-9a-f]{16}", key.pop("id"))
    assert key.pop("created_at") > 0
    assert key == {
        "name": "ci",
        "models": ["daily", "auto/*"],
        "provider": "alpha",
        "limits": {"requests_per_minute": 60.0},
        "leak": {},
        "expires_at": None,
        "state": "valid",
        "revoked_at": None,
        "previous_until": None,
        "origin": "database",
        "read_only": False,
        "version": 1,
        "warnings": [],
    }


async def test_its_place_and_version_are_in_the_headers(house: House) -> None:
    answer = await house.post("/api/keys", {"name": "ci"})
    assert (answer.header("location"), answer.header("etag")) == (f"/api/keys/{answer.json()['id']}", '"1"')
    assert answer.header("cache-control") == "no-store"


async def test_the_secret_works_when_it_is_answered_and_is_never_told_again(house: House) -> None:
    key = await made(house)
    assert await opens(house, key["key"]) == 200
    for path in ("/api/keys", f"/api/keys/{key['id']}", "/api/keys/ci"):
        answer = await house.ask("GET", path)
        assert key["key"].removeprefix("sk-troy-") not in answer.body.decode()


async def test_a_secret_that_was_called_wrong_before_does_not_matter(house: House) -> None:
    key = await made(house)
    await house.post("/api/keys/ci/revoke", None)
    assert await opens(house, key["key"]) == 401


async def test_globs_of_a_key_count_at_once(house: House) -> None:
    key = await made(house)
    await house.ask("PATCH", "/api/keys/ci", {"models": ["filed"]})
    listed = await house.get("/v1/models", authorization=f"Bearer {key['key']}")
    assert [model["id"] for model in listed["data"]] == ["filed"]


async def test_a_revoked_key_fails_at_once_and_stays_listed(house: House) -> None:
    key = await made(house)
    await opens(house, key["key"])
    answer = await house.post(f"/api/keys/{key['id']}/revoke", None)
    assert (answer.status, answer.json()["state"], await opens(house, key["key"])) == (200, "revoked", 401)
    assert [k["state"] for k in (await house.get("/api/keys"))["data"] if k["name"] == "ci"] == ["revoked"]


async def test_revoking_twice_is_no_error(house: House) -> None:
    await made(house)
    first = await house.post("/api/keys/ci/revoke", None)
    again = await house.post("/api/keys/ci/revoke", None)
    assert (again.status, again.json()["revoked_at"]) == (200, first.json()["revoked_at"])


async def test_a_revoked_key_fails_at_once_although_the_file_is_broken(house: House) -> None:
    key = await made(house)
    await opens(house, key["key"])
    house.file.write_text("providers: 7")
    answer = await house.post("/api/keys/ci/revoke", None)
    assert (answer.status, answer.json()["warnings"], await opens(house, key["key"])) == (200, [], 401)


async def test_what_another_process_revoked_fails_within_a_poll_although_the_file_is_broken(house: House) -> None:
    key = await made(house)
    await opens(house, key["key"])
    house.file.write_text("providers: 7")
    await house.store.keys.revoke(key["id"], at=1.0)
    await house.gateway.snapshots.look()
    assert await opens(house, key["key"]) == 401


async def test_a_rotated_key_has_a_new_secret_and_the_old_one_ends_at_once(house: House) -> None:
    key = await made(house, models=["filed"])
    answer = await house.post("/api/keys/ci/rotate", None)
    rotated = answer.json()
    assert (answer.status, rotated["id"], rotated["models"], answer.header("etag")) == (
        200,
        key["id"],
        ["filed"],
        '"2"',
    )
    assert SECRET.fullmatch(rotated["key"])
    assert (await opens(house, key["key"]), await opens(house, rotated["key"])) == (401, 200)


async def test_with_a_grace_the_old_secret_works_until_it_is_over(house: House) -> None:
    key = await made(house)
    rotated = (await house.post("/api/keys/ci/rotate", {"grace_s": 60})).json()
    assert rotated["previous_until"] == house.clock.now() + 60
    assert (await opens(house, key["key"]), await opens(house, rotated["key"])) == (200, 200)
    house.clock.move(60)
    assert (await opens(house, key["key"]), await opens(house, rotated["key"])) == (401, 200)
    assert (await house.get("/api/keys/ci"))["previous_until"] is None


async def test_a_removed_key_is_gone_and_opens_nothing(house: House) -> None:
    key = await made(house)
    await opens(house, key["key"])
    answer = await house.ask("DELETE", "/api/keys/ci")
    assert answer.json() == {"id": key["id"], "deleted": True}
    assert ((await house.ask("GET", "/api/keys/ci")).status, await opens(house, key["key"])) == (404, 401)


async def test_replacing_takes_away_what_is_not_given(house: House) -> None:
    await made(house, models=["daily"], limits={"budget_usd_per_day": 5})
    body = (await house.ask("PUT", "/api/keys/ci", {"models": ["auto"]})).json()
    assert (body["name"], body["models"], body["limits"], body["version"]) == ("ci", ["auto"], {}, 2)


async def test_what_was_read_can_be_put_back(house: House) -> None:
    await made(house, leak={"mode": "off", "locked": True}, expires_at="2999-01-31T12:00:00Z")
    read = await house.get("/api/keys/ci")
    again = (await house.ask("PUT", "/api/keys/ci", read)).json()
    assert {**read, "version": 2, "warnings": []} == again


async def test_null_lifts_an_expiry(house: House) -> None:
    key = await made(house, expires_at=house.clock.now() - 1)
    assert (key["state"], len(key["warnings"]), await opens(house, key["key"])) == ("expired", 1, 401)
    await house.ask("PATCH", "/api/keys/ci", {"expires_at": None})
    assert await opens(house, key["key"]) == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/api/keys/ci"),
        ("PATCH", "/api/keys/ci"),
        ("DELETE", "/api/keys/ci"),
        ("POST", "/api/keys/ci/revoke"),
        ("POST", "/api/keys/ci/rotate"),
    ],
)
@pytest.mark.parametrize(("tag", "status"), [('"1"', 412), ('"2"', 200), ("*", 200)])
async def test_if_match_guards_against_lost_writes(house: House, method: str, path: str, tag: str, status: int) -> None:
    await made(house)
    await house.ask("PUT", "/api/keys/ci", {})
    assert (await house.ask(method, path, {}, if_match=tag)).status == status


async def test_the_list_has_the_files_keys_with_their_origin_and_comes_in_pages(house: House) -> None:
    await made(house)
    seen, cursor = list[tuple[str, str, bool]](), ""
    while cursor is not None:
        page = await house.get(f"/api/keys?limit=1{cursor and f'&cursor={cursor}'}")
        seen += [(key["name"], key["origin"], key["read_only"]) for key in page["data"]]
        cursor = page["next_cursor"]
    assert seen == [("all", "file", True), ("narrow", "file", True), ("ci", "database", False)]


async def test_a_key_of_the_file_is_a_conflict_that_names_the_file(house: House) -> None:
    answers = [
        await house.post("/api/keys", {"name": "ALL"}),
        await house.ask("PUT", "/api/keys/all", {}),
        await house.ask("PATCH", "/api/keys/all", {}),
        await house.ask("DELETE", "/api/keys/file:all"),
        await house.post("/api/keys/all/revoke", None),
        await house.post("/api/keys/all/rotate", None),
    ]
    assert [(a.status, "troyproxy.yaml" in a.json()["error"]["message"]) for a in answers] == [(409, True)] * 6


async def test_a_revoked_key_is_changed_no_more(house: House) -> None:
    await made(house)
    await house.post("/api/keys/ci/revoke", None)
    answers = [await house.ask("PATCH", "/api/keys/ci", {}), await house.post("/api/keys/ci/rotate", None)]
    assert [answer.status for answer in answers] == [409, 409]


async def test_what_is_not_there_is_404(house: House) -> None:
    answers = [
        await house.ask("GET", "/api/keys/none"),
        await house.ask("PUT", "/api/keys/none", {}),
        await house.ask("DELETE", "/api/keys/none"),
        await house.post("/api/keys/none/revoke", None),
        await house.post("/api/keys/none/rotate", None),
    ]
    assert [(a.status, a.json()["error"]["code"]) for a in answers] == [(404, "not_found")] * 5


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({}, "name"),
        ({"name": "ci", "key": "sk-troy-mine"}, "key"),
        ({"name": "ci", "limits": {"requests_per_minute": 0}}, "limits.requests_per_minute"),
        ({"name": "ci", "limits": {"tokens_per_day": 1}}, "limits.tokens_per_day"),
        ({"name": "ci", "models": ["x"] * 101}, "models"),
        ({"name": "ci", "leak": {"mode": "?"}}, "leak.mode"),
    ],
)
async def test_what_is_not_valid_is_422_and_names_the_field(
    house: House, raw: Mapping[str, object], field: str
) -> None:
    answer = await house.post("/api/keys", raw)
    assert (answer.status, fields_of(answer.json())) == (422, [field])


async def test_an_unknown_preferred_provider_is_a_warning(house: House) -> None:
    assert "nowhere" in (await made(house, provider="nowhere"))["warnings"][0]


async def test_a_database_that_is_down_is_503(house: House) -> None:
    with patch.object(house.store.keys, "list", side_effect=StoreUnavailable("the database is down")):
        answer = await house.ask("GET", "/api/keys")
    assert (answer.status, answer.json()["error"]["code"]) == (503, "store_unavailable")


async def test_a_client_key_does_not_open_it(house: House) -> None:
    key = await made(house)
    assert (await house.ask("GET", "/api/keys", authorization=f"Bearer {key['key']}")).status == 401
