"""``GET /v1/models``."""

from __future__ import annotations

import pytest

from tests.api.house import KEY, NARROW_KEY, House
from troyproxy.api.models import entries_of
from troyproxy.catalog.combos import Combo, Member
from troyproxy.catalog.models import Model
from troyproxy.catalog.providers import NO_AUTH, Provider
from troyproxy.catalog.snapshot import Snapshot, build

ALL = f"Bearer {KEY}"


def ids(snapshot: Snapshot) -> list[object]:
    """Return the ids of the list."""
    return [entry["id"] for entry in entries_of(snapshot)]


@pytest.mark.anyio
async def test_the_list_has_combos_then_auto_then_models_in_file_order(house: House) -> None:
    body = await house.get("/v1/models", authorization=ALL)
    listed = [entry["id"] for entry in body["data"]]
    assert (body["object"], listed[:4], listed[9:12]) == (
        "list",
        ["filed", "demo", "auto", "auto/coding"],
        ["alpha/gpt-x", "alpha/bare", "local/tiny"],
    )


@pytest.mark.anyio
async def test_a_combo_shows_what_its_weakest_member_can(house: House) -> None:
    assert await house.get("/v1/models/filed", authorization=ALL) == {
        "id": "filed",
        "object": "model",
        "created": 0,
        "owned_by": "troy",
        "context_length": 4000,
        "max_output_tokens": 1000,
        "capabilities": {"tools": False, "vision": False, "reasoning": False, "json": None, "audio": None},
    }


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["alpha/gpt-x", "alpha%2Fgpt-x"])
async def test_an_id_with_a_slash_is_found_encoded_or_not(house: House, path: str) -> None:
    entry = await house.get(f"/v1/models/{path}", authorization=ALL)
    assert (entry["id"], entry["owned_by"]) == ("alpha/gpt-x", "alpha")


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["caf%C3%A9", "cafe%CC%81", "my-id"])
async def test_a_combo_is_found_by_any_spelling_of_its_name_and_by_its_id(house: House, path: str) -> None:
    await house.post("/api/combos", {"id": "my-id", "name": "café", "members": ["demo/ok"]})
    entry = await house.get(f"/v1/models/{path}", authorization=ALL)
    assert (entry["id"], entry["created"] > 0) == ("café", True)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "id"),
    [
        ("gpt-x", "alpha/gpt-x"),
        ("ALPHA/gpt-x", "alpha/gpt-x"),
        ("FILED", "filed"),
        ("combo/filed", "filed"),
        ("combo%2Ffiled", "filed"),
        ("auto/coding", "auto/coding"),
        ("AUTO/Coding", "auto/coding"),
        ("auto%2Fcoding", "auto/coding"),
    ],
)
async def test_a_model_is_found_by_every_name_that_a_request_may_use(house: House, path: str, id: str) -> None:  # noqa: A002 -- the field's name
    assert (await house.get(f"/v1/models/{path}", authorization=ALL))["id"] == id


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["auto/nothing", "alpha/unlisted", "default", "nobody/x"])
async def test_a_name_that_is_in_no_list_is_404(house: House, path: str) -> None:
    answer = await house.ask("GET", f"/v1/models/{path}", authorization=ALL)
    assert (answer.status, answer.json()["error"]["code"]) == (404, "model_not_found")


@pytest.mark.anyio
async def test_an_alias_is_no_way_round_a_key(house: House) -> None:
    answer = await house.ask("GET", "/v1/models/gpt-x", authorization=f"Bearer {NARROW_KEY}")
    assert answer.status == 404


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/alpha/gpt-x"])
async def test_head_is_answered_like_get(house: House, path: str) -> None:
    got = await house.ask("GET", path, authorization=ALL)
    head = await house.ask("HEAD", path, authorization=ALL)
    assert (head.status, head.header("content-length")) == (200, got.header("content-length"))


@pytest.mark.anyio
async def test_a_key_sees_what_it_may_use_only(house: House) -> None:
    narrow = f"Bearer {NARROW_KEY}"
    body = await house.get("/v1/models", authorization=narrow)
    other = await house.ask("GET", "/v1/models/demo", authorization=narrow)
    assert ([entry["id"] for entry in body["data"]], other.status) == (["filed"], 404)


@pytest.mark.anyio
async def test_what_is_not_listed_is_404(house: House) -> None:
    answer = await house.ask("GET", "/v1/models/" + "x" * 999, authorization=ALL)
    assert (answer.status, answer.json()["error"]["code"], len(answer.body) < 500) == (404, "model_not_found", True)


@pytest.mark.anyio
async def test_without_a_key_there_is_no_list(house: House) -> None:
    answer = await house.ask("GET", "/v1/models", authorization="")
    assert (answer.status, answer.header("x-troy-request-id") is not None) == (401, True)


def test_no_id_stands_twice_where_a_combo_is_called_like_a_spec() -> None:
    alpha = Provider("alpha", auth=NO_AUTH, models={"m": Model("m")})
    combos = [Combo(id="c", name=name, members=(Member(model="alpha/m"),)) for name in ("alpha/m", "team/m")]
    assert ids(build([alpha], combos)) == ["team/m", *_auto(), "alpha/m"]


def test_a_provider_without_an_account_shows_nothing_and_auto_needs_one() -> None:
    assert ids(build([Provider("alpha", models={"m": Model("m")})])) == []


def _auto() -> list[str]:
    return ["auto", *(f"auto/{name}" for name in ("coding", "fast", "cheap", "offline", "smart", "lkgp"))]


def test_an_auto_id_shows_the_pool_behind_it() -> None:
    alpha = Provider("alpha", auth=NO_AUTH, models={"m1": Model("m1"), "m2": Model("m2")}, default_model="m2")
    house = build([alpha, Provider("beta", auth=NO_AUTH, models={"b1": Model("b1")})])
    entry = next(entry for entry in entries_of(house) if entry["id"] == "auto/fast")
    assert entry["pool"] == ["alpha/m2", "beta/b1"]
