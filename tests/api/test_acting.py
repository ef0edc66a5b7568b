"""Explain, clear, reload."""

from __future__ import annotations

import json
import socket
from typing import Any, Never

import pytest

from tests.api.house import House
from troyproxy.errors import StoreUnavailable
from troyproxy.resilience.events import Cleared, to_record

pytestmark = pytest.mark.anyio

ASK: dict[str, Any] = {"model": "filed", "messages": [{"role": "user", "content": "hello"}]}
TOOLS = [{"type": "function", "function": {"name": "f"}}]


async def explained(house: House, **fields: object) -> Any:  # noqa: ANN401 -- JSON
    answer = await house.post("/api/explain", {**ASK, **fields})
    assert answer.status == 200, answer.body
    return answer.json()


async def test_explain_says_how_the_name_resolved(house: House) -> None:
    assert (await explained(house))["model"] == {
        "asked": "filed",
        "kind": "combo",
        "canonical": "filed",
        "combo": "filed",
        "suffix_effort": None,
        "how": "a combo has this name",
    }


async def test_explain_gives_each_member_its_verdict(house: House) -> None:
    body = await explained(house, tools=TOOLS)
    assert [(m["member"], m["verdict"], m["reason"], m["place"]) for m in body["members"]] == [
        ("alpha/gpt-x", "eligible", None, 1),
        ("alpha/bare", "skipped", "no-tools", None),
    ]
    assert (body["order"], body["needs"]["tools"], body["refused"]) == (["alpha/gpt-x"], True, None)


@pytest.mark.parametrize(
    ("key", "status", "code"), [("narrow", 403, "model_not_allowed"), ("nobody", 404, "not_found")]
)
async def test_explain_answers_as_the_key_that_is_named_would_be(
    house: House, key: str, status: int, code: str
) -> None:
    answer = await house.post(f"/api/explain?key={key}", {**ASK, "model": "alpha/bare"})
    assert (answer.status, answer.json()["error"]["code"]) == (status, code)
    assert (await house.post("/api/explain?key=narrow", ASK)).status == 200


async def test_explain_says_what_would_be_changed_for_a_member(house: House) -> None:
    body = await explained(house, max_tokens=2000, stream=True, reasoning_effort="high")
    assert body["members"][0]["adapted"] == ["stream_options.include_usage=true", "max_tokens:1000"]
    assert "-reasoning_effort" in body["members"][1]["adapted"]


async def test_explain_tells_the_effort(house: House) -> None:
    body = await explained(house, model="gpt-x-high")
    assert (body["effort"]["level"], body["effort"]["source"], body["model"]["suffix_effort"]) == (
        "high",
        "suffix",
        "high",
    )


async def test_explain_says_what_the_client_would_be_refused_with(house: House) -> None:
    body = await explained(house, model="alpha/bare", tools=TOOLS)
    assert (body["refused"]["status"], body["refused"]["error"]["code"], body["order"]) == (
        503,
        "no_eligible_member",
        [],
    )


async def test_explain_names_a_member_once(house: House) -> None:
    await house.post("/api/combos", {"name": "twice", "members": ["filed", "alpha/bare", "nobody/m", "alpha/gpt-x"]})
    body = await explained(house, model="twice", tools=TOOLS)
    assert [(m["member"], m["reason"]) for m in body["members"]] == [
        ("alpha/gpt-x", None),
        ("alpha/bare", "no-tools"),
        ("nobody/m", "unknown-provider"),
    ]


async def test_explain_tells_pinned_accounts_apart(house: House) -> None:
    members = [{"model": "alpha/gpt-x", "account": name} for name in ("gone", "team-b")]
    await house.post("/api/combos", {"name": "pinned", "members": members})
    body = await explained(house, model="pinned")
    assert [(m["account"], m["reason"]) for m in body["members"]] == [("gone", "no-account"), ("team-b", None)]


@pytest.mark.parametrize("model", ["filed", "auto"])
async def test_explain_opens_no_socket(house: House, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    def refuse(*_: object) -> Never:
        raise AssertionError("explain opens no socket")

    for method in ("connect", "connect_ex", "bind", "listen", "sendto"):
        monkeypatch.setattr(socket.socket, method, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert (await explained(house, model=model))["order"]


async def test_explain_reads_the_routing_headers(house: House) -> None:
    answer = await house.post("/api/explain", {**ASK, "model": "default"}, x_troy_provider="local")
    assert answer.json()["order"][0] == "local/tiny"


async def test_explain_calls_nobody_and_moves_nothing(house: House) -> None:
    members = ["demo/ok", "demo/chat"]
    await house.post("/api/combos", {"name": "turns", "members": members, "strategy": "round-robin"})
    orders = [(await explained(house, model="turns"))["order"] for _ in range(3)]
    assert orders == [members] * 3
    assert (await house.get("/api/requests"))["data"] == []


async def test_explain_shows_a_cooldown(house: House) -> None:
    await house.chat("demo/fail-429-retry-9")
    body = await explained(house, model="demo/fail-429-retry-9")
    assert (body["members"][0]["reason"], body["refused"]["status"]) == ("cooldown", 429)


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"model": "nothing/here"}, 404, "model_not_found"),
        ({"model": "auto/none"}, 400, "unknown_variant"),
        ({"model": None}, 400, "invalid_request"),
        ({"messages": []}, 400, "invalid_request"),
        ({"reasoning_effort": "much"}, 400, "invalid_effort"),
    ],
)
async def test_explain_answers_a_bad_request_as_a_client_would_be(
    house: House, fields: dict[str, object], status: int, code: str
) -> None:
    answer = await house.post("/api/explain", {**ASK, **fields})
    assert (answer.status, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"provider": "demo"},
        {"provider": "DEMO", "account": "demo-keyless"},
        {"provider": "demo", "account": "demo#keyless", "model": None},
        {"model": "fail-429-retry-9"},
    ],
)
async def test_clearing_lifts_what_matches(house: House, wanted: dict[str, object]) -> None:
    await house.chat("demo/fail-429-retry-9")
    answer = await house.post("/api/cooldowns/clear", wanted)
    expected = {"cooldowns": 1, "circuits": 0, "everywhere": True}
    assert (answer.json(), (await house.get("/api/status"))["cooldowns"]) == (expected, [])


@pytest.mark.parametrize("wanted", [{"provider": "alpha"}, {"model": "other"}])
async def test_clearing_leaves_what_does_not_match(house: House, wanted: dict[str, object]) -> None:
    await house.chat("demo/fail-429-retry-9")
    answer = await house.post("/api/cooldowns/clear", wanted)
    assert answer.json() == {"cooldowns": 0, "circuits": 0, "everywhere": True}


async def test_clearing_closes_an_open_circuit(house: House) -> None:
    for _ in range(3):
        await house.chat("demo/fail-500")
        house.clock.move(15)
    assert (await house.post("/api/cooldowns/clear", {"provider": "demo"})).json()["circuits"] == 1


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"provider": "nobody"}, "provider"),
        ({"provider": 7}, "provider"),
        ({"account": "team-a"}, "account"),
        ({"provider": "alpha", "account": "nobody"}, "account"),
        ({"everything": True}, "everything"),
    ],
)
async def test_what_cannot_be_cleared_is_422(house: House, wanted: dict[str, object], field: str) -> None:
    answer = await house.post("/api/cooldowns/clear", wanted)
    assert (answer.status, answer.json()["error"]["details"][0]["field"]) == (422, field)


async def test_a_reload_brings_the_file_into_force(house: House) -> None:
    house.file.write_text(house.file.read_text().replace("filed:", "renamed:"))
    before = await house.store.control.revision()
    answer = await house.post("/api/config/reload", None)
    assert (answer.status, answer.json()["revision"]) == (200, before + 1)
    assert [c["id"] for c in (await house.get("/api/combos"))["data"]] == ["demo", "renamed"]


async def test_a_reload_says_what_is_odd_about_the_file(house: House) -> None:
    warnings = (await house.post("/api/config/reload", None)).json()["warnings"]
    assert "keys[0].key: a secret stands in the file; better: env:NAME" in warnings


async def test_a_reload_makes_the_other_processes_reload(house: House) -> None:
    before = await house.store.control.revision()
    await house.post("/api/config/reload", None)
    assert await house.store.control.revision() == before + 1 == house.gateway.snapshots.current.revision


async def test_an_invalid_file_is_422_and_the_old_one_stays(house: House) -> None:
    house.file.write_text("combos: {x: {members: 7}}\nproviders: {}")
    before = await house.store.control.revision()
    answer = await house.post("/api/config/reload", None)
    assert answer.status == 422
    assert answer.json()["error"]["details"][0]["field"] == "combos.x.members"
    assert await house.store.control.revision() == before
    assert (await house.get("/api/combos/filed"))["origin"] == "file"
    assert (await house.get("/api/status"))["config"]["error"] is not None


async def test_a_file_that_is_no_yaml_has_details_too(house: House) -> None:
    house.file.write_text("a: [")
    answer = await house.post("/api/config/reload", None)
    assert (answer.status, len(answer.json()["error"]["details"])) == (422, 1)


async def test_a_reload_without_a_database_is_503(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def revision() -> int:
        raise StoreUnavailable("down")

    monkeypatch.setattr(house.store.control, "revision", revision)
    assert (await house.post("/api/config/reload", None)).status == 503


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/api/status"), ("GET", "/api/explain"), ("DELETE", "/api/combos")]
)
async def test_a_wrong_method_is_405_with_what_is_allowed(house: House, method: str, path: str) -> None:
    answer = await house.ask(method, path)
    assert (answer.status, answer.json()["error"]["code"]) == (405, "method_not_allowed")
    assert answer.header("allow") in {"GET, HEAD", "POST", "GET, HEAD, POST"}


async def test_an_unknown_page_is_404_in_the_envelope(house: House) -> None:
    answer = await house.ask("GET", "/api/nothing")
    assert (answer.status, answer.json()["error"]["type"]) == (404, "invalid_request_error")


async def test_the_bytes_of_an_odd_request_survive_explaining(house: House) -> None:
    body = json.dumps(ASK).encode().replace(b'"hello"', b'"\\ud800", "x": NaN')
    assert (await house.post("/api/explain", body)).status == 200


async def test_a_clearing_is_told_to_the_other_processes(house: House) -> None:
    before = await house.store.control.newest(house.clock.now() + 1)
    await house.post("/api/cooldowns/clear", {"provider": "demo"})
    [event] = await house.store.control.since(before)
    assert (event.kind, event.payload["provider"], event.payload["at"]) == ("clear", "demo", house.clock.now())


async def test_a_clearing_that_another_process_tells_is_done_here(house: House) -> None:
    await house.gateway.snapshots.look()
    await house.chat("demo/fail-429-retry-9")
    await house.store.control.publish("clear", to_record(Cleared(house.clock.now(), "demo")))
    await house.gateway.snapshots.look()
    assert (await house.get("/api/status"))["cooldowns"] == []


async def test_a_clearing_without_a_database_is_for_here_only(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def publish(kind: str, payload: object) -> int:
        raise StoreUnavailable("down")

    await house.chat("demo/fail-429-retry-9")
    monkeypatch.setattr(house.store.control, "publish", publish)
    answer = await house.post("/api/cooldowns/clear", {})
    assert answer.json() == {"cooldowns": 1, "circuits": 0, "everywhere": False}
