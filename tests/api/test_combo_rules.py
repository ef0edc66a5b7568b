"""What ``/api/combos`` refuses, and what it only warns of."""

from __future__ import annotations

import pytest

from tests.api.house import House, fields_of

pytestmark = pytest.mark.anyio

ONE = {"name": "one", "members": ["demo/ok"]}
MIXED = "config.allow_mixed_embeddings"


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"members": ["demo/ok"]}, "name"),
        ({"name": "", "members": ["demo/ok"]}, "name"),
        ({"name": " one", "members": ["demo/ok"]}, "name"),
        ({"name": "o\0ne", "members": ["demo/ok"]}, "name"),
        ({"name": "o\nne", "members": ["demo/ok"]}, "name"),
        ({"name": "x" * 10_000, "members": ["demo/ok"]}, "name"),
        ({"name": "../x", "members": ["demo/ok"]}, "name"),
        ({"name": "\ud800", "members": ["demo/ok"]}, "name"),
        ({"name": "auto", "members": ["demo/ok"]}, "name"),
        ({"name": "alpha/gpt-x", "members": ["demo/ok"]}, "name"),
        ({"name": 7, "members": ["demo/ok"]}, "name"),
        ({"name": "one", "id": "Not a slug", "members": ["demo/ok"]}, "id"),
        ({"name": "one"}, "members"),
        ({"name": "one", "members": []}, "members"),
        ({"name": "one", "members": ["a/b"] * 1001}, "members"),
        ({"name": "one", "members": "demo/ok"}, "members"),
        ({"name": "one", "members": [7]}, "members[0]"),
        ({"name": "one", "members": [{"model": "a/b", "combo": "c"}]}, "members[0]"),
        ({"name": "one", "members": [{"model": "a/b", "weight": -1}]}, "members[0].weight"),
        ({"name": "one", "members": ["a/b"], "models": ["a/b"]}, "models"),
        ({"name": "one", "members": ["a/b"], "strategy": "fastest"}, "strategy"),
        ({"name": "one", "members": ["a/b"], "strategy": ["random"]}, "strategy"),
        ({"name": "one", "members": ["a/b"], "config": {"sticky": 0}}, "config.sticky"),
        ({"name": "one", "members": ["a/b"], "config": {"sticky": True}}, "config.sticky"),
        ({"name": "one", "members": ["a/b"], "config": {"allow_mixed_embeddings": "true"}}, MIXED),
        ({"name": "one", "members": ["a/b"], "config": {"allow_mixed_embeddings": 1}}, MIXED),
        ({"name": "one", "members": ["a/b"], "config": {"allow_mixed_embeddings": None}}, MIXED),
        ({"name": "one", "members": ["a/b"], "config": {"handoff_model": 7}}, "config.handoff_model"),
        ({"name": "one", "members": ["a/b"], "config": {"handoff_model": " "}}, "config.handoff_model"),
        ({"name": "one", "members": ["a/b"], "config": {"keep_turns": 0}}, "config.keep_turns"),
        ({"name": "one", "members": ["a/b"], "config": {"keep_turns": 101}}, "config.keep_turns"),
        ({"name": "one", "members": ["a/b"], "config": {"keep_turns": True}}, "config.keep_turns"),
        ({"name": "one", "members": ["a/b"], "config": {"keep_turns": "2"}}, "config.keep_turns"),
        ({"name": "one", "members": ["a/b"], "config": []}, "config"),
        ({"name": "one", "members": ["a/b"], "membres": []}, "membres"),
    ],
)
async def test_what_is_not_valid_is_422_and_names_the_field(house: House, raw: dict[str, object], field: str) -> None:
    answer = await house.post("/api/combos", raw)
    assert (answer.status, answer.json()["error"]["code"], fields_of(answer.json())) == (
        422,
        "validation_failed",
        [field],
    )


async def test_every_problem_is_named_at_once(house: House) -> None:
    answer = await house.post("/api/combos", {"name": "", "members": 1, "strategy": "x"})
    assert sorted(fields_of(answer.json())) == ["members", "name", "strategy"]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        *[(value, "config.x[0]") for value in (b"NaN", b"-Infinity", b"1e400", b'"\\u0000"', b'"\\ud800"')],
        (b'{"\\ud800": 1}', "config.x[0]"),
        (b'{"auto": {"weights": {"health": NaN}}}', "config.x[0].auto.weights.health"),
    ],
)
async def test_a_config_that_no_database_keeps_as_it_is_is_refused(house: House, value: bytes, field: str) -> None:
    raw = b'{"name": "one", "members": ["demo/ok"], "config": {"x": [%s]}}' % value
    answer = await house.post("/api/combos", raw)
    assert (answer.status, fields_of(answer.json())) == (422, [field])


async def test_weights_that_are_no_numbers_are_named_one_by_one(house: House) -> None:
    raw = b'{"name": "one", "strategy": "auto", "config": {"auto": {"weights": {"health": NaN, "quota": Infinity}}}}'
    answer = await house.post("/api/combos", raw)
    assert fields_of(answer.json()) == ["config.auto.weights.health", "config.auto.weights.quota"]


async def test_any_other_config_is_stored_whole(house: House) -> None:
    auto = {"candidatePool": ["anthropic", "google"], "weights": {"quota": 0.2, "health": 1}}
    config = {"auto": auto, "of a later version": [1, 2.5, 10**30, {"x": {}}, "模型"], "": ""}
    await house.post("/api/combos", {**ONE, "config": config})
    assert (await house.get("/api/combos/one"))["config"] == config


async def test_a_config_may_not_nest_without_end(house: House) -> None:
    deep: dict[str, object] = {}
    for _ in range(30):
        deep = {"a": [deep]}
    answer = await house.post("/api/combos", {**ONE, "config": deep})
    assert (answer.status, fields_of(answer.json())) == (422, ["config"])


async def test_an_unknown_strategy_lists_those_that_there_are(house: House) -> None:
    answer = await house.post("/api/combos", {"name": "one", "strategy": "fastest", "members": ["demo/ok"]})
    assert "fallback, priority, weighted" in answer.json()["error"]["message"]


async def test_an_auto_combo_works_as_the_documentation_posts_it(house: House) -> None:
    auto = {"candidatePool": ["anthropic", "demo"], "weights": {"tierPriority": 0.3, "costInv": 0.05}}
    raw = {"id": "my-auto", "name": "Auto Coder", "strategy": "auto", "config": {"auto": auto}}
    made = await house.post("/api/combos", raw)
    body = made.json()
    assert (made.status, body["id"], body["members"], body["config"]) == (201, "my-auto", [], {"auto": auto})
    assert round(body["effective_weights"]["tierPriority"], 4) == 0.2655
    assert body["warnings"] == ["candidatePool: 'anthropic' is no configured provider and is skipped"]
    answer = await house.chat("Auto Coder")
    assert (answer.status, answer.header("x-troy-strategy")) == (200, "auto")


async def test_every_problem_of_an_auto_config_is_named_by_its_path(house: House) -> None:
    auto = {"speed": 1, "weights": {"health": -1, "luck": 1}, "modePack": "turbo"}
    answer = await house.post("/api/combos", {"name": "one", "strategy": "auto", "config": {"auto": auto}})
    assert answer.status == 422
    places = ["modePack", "speed", "weights.health", "weights.luck"]
    assert sorted(fields_of(answer.json())) == [f"config.auto.{place}" for place in places]


async def test_only_an_auto_combo_may_have_no_members(house: House) -> None:
    answer = await house.post("/api/combos", {"name": "one", "strategy": "random"})
    assert (answer.status, fields_of(answer.json())) == (422, ["members"])


@pytest.mark.parametrize(("name", "ident"), [("one", None), ("ONE", None), ("other", "one"), ("oNe", "other")])
async def test_a_name_or_id_in_use_is_a_conflict_in_any_case(house: House, name: str, ident: str | None) -> None:
    await house.post("/api/combos", ONE)
    answer = await house.post("/api/combos", {"name": name, "id": ident, "members": ["demo/ok"]})
    assert (answer.status, answer.json()["error"]["code"]) == (409, "conflict")


async def test_a_combo_of_the_file_is_a_conflict_that_names_the_file(house: House) -> None:
    answers = [
        await house.post("/api/combos", {**ONE, "name": "FILED"}),
        await house.ask("PUT", "/api/combos/filed", ONE),
        await house.ask("PATCH", "/api/combos/filed", ONE),
        await house.ask("DELETE", "/api/combos/filed"),
    ]
    assert [(a.status, "troyproxy.yaml" in a.json()["error"]["message"]) for a in answers] == [(409, True)] * 4


async def test_a_built_in_combo_is_read_only_too(house: House) -> None:
    answer = await house.ask("DELETE", "/api/combos/demo")
    assert (answer.status, "built in" in answer.json()["error"]["message"]) == (409, True)


async def test_what_is_not_there_is_404(house: House) -> None:
    answers = [
        await house.ask("GET", "/api/combos/none"),
        await house.ask("PUT", "/api/combos/none", ONE),
        await house.ask("DELETE", "/api/combos/none"),
    ]
    assert [(a.status, a.json()["error"]["code"]) for a in answers] == [(404, "not_found")] * 3


async def test_a_combo_of_itself_is_a_ring(house: House) -> None:
    answer = await house.post("/api/combos", {"name": "a", "members": ["a"]})
    assert (answer.status, "a → a" in answer.json()["error"]["message"]) == (400, True)


async def test_a_combo_that_names_a_model_like_itself_means_the_model(house: House) -> None:
    answer = await house.post("/api/combos", {"name": "gpt-x", "members": ["gpt-x"]})
    assert answer.status == 201


async def test_a_ring_closed_later_is_refused_and_named(house: House) -> None:
    await house.post("/api/combos", {"name": "a", "members": ["b", "demo/ok"]})
    await house.post("/api/combos", {"name": "b", "members": ["c"]})
    answer = await house.post("/api/combos", {"name": "c", "members": ["a"]})
    assert (answer.status, "c → a → b → c" in answer.json()["error"]["message"]) == (400, True)


async def test_a_renaming_that_closes_a_ring_is_refused(house: House) -> None:
    await house.post("/api/combos", {"name": "a", "members": ["x"]})
    await house.post("/api/combos", {"name": "b", "members": ["a"]})
    answer = await house.ask("PATCH", "/api/combos/b", {"name": "x"})
    assert answer.status == 400


async def test_an_unknown_provider_is_accepted_with_a_warning(house: House) -> None:
    answer = await house.post("/api/combos", {"name": "one", "members": ["nobody/m", "demo/ok"]})
    assert (answer.status, "nobody/m" in answer.json()["warnings"][0]) == (201, True)


async def test_a_name_that_is_also_a_model_is_accepted_with_a_warning(house: House) -> None:
    answer = await house.post("/api/combos", {**ONE, "name": "gpt-x"})
    assert (answer.status, "also a model of alpha" in answer.json()["warnings"][0]) == (201, True)
