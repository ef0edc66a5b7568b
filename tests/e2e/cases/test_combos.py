"""Field cases CO-01, CO-02, CO-04 and CO-05: rings, names that collide, edits under way, and names of every script."""

from __future__ import annotations

import itertools
import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import pytest
from openai import OpenAI

from tests.e2e.cases.house import calls, combo, posted, provider
from tests.e2e.client import Open, Response
from tests.e2e.gateway import Gateway, chat, client_headers, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import Gate, Reply, Upstreams, error

BAD_NAMES: Final = (
    *("", " ", "a\u0000b", "a\nb", "a\rb", " lead", "trail ", "x" * 101, "x" * 10_000, "../x", "a/../b", "./a", "/a"),
    *("a/", "auto", "default", "combo", "troy", "auto/x", "Auto", "alpha/gpt-x", "ALPHA/x", "a\u202eb", "🚀", "a\tb"),
)
GOOD_NAMES: Final = ("模型-快", "caf\u00e9", "नमस्ते", "дом 1", "team/fast", "A.b_c-d")


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {
        "providers": {
            "alpha": provider(upstreams, "alpha", models={"gpt-x": {}, "listed": {}}),
            "beta": provider(upstreams, "beta"),
            "gamma": provider(upstreams, "gamma"),
        },
        "combos": {"of-the-file": combo("alpha/m1")},
    }
    with run_gateway(folder, config) as running:
        yield running


def create(gateway: Gateway, name: str, *members: object, **more: object) -> Response:
    """Ask for a combo."""
    return gateway.admin("POST", "/api/combos", {"name": name, "members": list(members), **more})


def replace(gateway: Gateway, name: str, *members: object) -> Response:
    """Give a combo other members."""
    path = f"/api/combos/{quote(name, safe='')}"
    return gateway.admin("PUT", path, {"name": name, "members": list(members)})


def test_co_01_a_combo_of_itself_is_refused(gateway: Gateway) -> None:
    answer = create(gateway, "co01-self", "co01-self")
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "co01-self → co01-self" in answer.json()["error"]["message"]


@pytest.mark.parametrize("length", [2, 3, 5])
def test_co_01_an_edit_that_closes_a_ring_is_refused_and_names_it(gateway: Gateway, length: int) -> None:
    names = [f"co01-{length}-{at}" for at in range(length)]
    for name, following in itertools.pairwise(names):
        assert create(gateway, name, following, "alpha/m1").status == 201
    closing_it = create(gateway, names[-1], names[0])
    assert closing_it.status == 400
    assert all(name in closing_it.json()["error"]["message"] for name in names)
    assert create(gateway, names[-1], "alpha/m1").status == 201
    assert replace(gateway, names[-1], names[0]).status == 400
    assert gateway.post(chat(names[0])).status == 200


def test_co_01_a_new_name_that_closes_a_ring_is_refused(gateway: Gateway) -> None:
    assert create(gateway, "co01-first", "co01-second", "alpha/m1").status == 201
    assert create(gateway, "co01-third", "co01-first").status == 201
    answer = gateway.admin("PUT", "/api/combos/co01-third", {"name": "co01-second", "members": ["co01-first"]})
    assert answer.status == 400


def test_co_01_a_ring_in_the_store_ends_at_once_and_its_good_member_answers_once(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    for name in ("co01-a", "co01-b", "co01-c", "co01-lone"):
        assert create(gateway, name, "alpha/co01").status == 201
    members: dict[str, list[tuple[str | None, str | None]]] = {
        "co01-a": [(None, "co01-b"), ("alpha/co01", None)],
        "co01-b": [(None, "co01-c")],
        "co01-c": [(None, "co01-a")],
        "co01-lone": [(None, "co01-lone")],
    }
    with closing(sqlite3.connect(gateway.database, timeout=5)) as database, database:
        for name, rows in members.items():
            database.execute("delete from combo_members where combo_id = ?", (name,))
            database.executemany(
                "insert into combo_members (combo_id, position, model, combo, weight) values (?, ?, ?, ?, 1)",
                [(name, at, model, nested) for at, (model, nested) in enumerate(rows)],
            )
    assert gateway.admin("POST", "/api/config/reload").status == 200
    upstreams.script("alpha", error(500), model="co01")
    for name in ("co01-a", "co01-b", "co01-c"):
        gateway.admin("POST", "/api/cooldowns/clear", {"provider": "alpha", "model": "co01"})
        before = calls(upstreams, "alpha/co01")[0]
        answer = gateway.post(chat(name))
        assert (answer.status, calls(upstreams, "alpha/co01")) == (500, [before + 1])
    lone = gateway.post(chat("co01-lone"))
    assert (lone.status, lone.code) == (503, "no_eligible_member")
    assert "Traceback" not in gateway.output()


def test_co_02_an_explicit_spec_always_reaches_its_provider(gateway: Gateway, upstreams: Upstreams) -> None:
    made = create(gateway, "gpt-x", "beta/co02")
    assert made.status == 201
    assert made.json()["warnings"]
    assert create(gateway, "alpha/gpt-x", "beta/co02").status == 422
    assert create(gateway, "auto", "beta/co02").status == 422
    assert create(gateway, "GPT-X", "beta/co02").status == 409
    bare, spec = gateway.post(chat("gpt-x")), gateway.post(chat("alpha/gpt-x"))
    assert (bare.headers["x-troy-combo"], bare.headers["x-troy-model"]) == ("gpt-x", "beta/co02")
    assert spec.headers["x-troy-model"] == "alpha/gpt-x"
    assert calls(upstreams, "alpha/gpt-x", "beta/co02") == [1, 1]
    ids = [model["id"] for model in gateway.whole("GET", "/v1/models", headers=client_headers()).json()["data"]]
    assert len(ids) == len(set(ids))
    assert {"gpt-x", "alpha/gpt-x"} <= set(ids)


def test_co_02_a_member_with_the_combos_own_name_means_the_model(gateway: Gateway, upstreams: Upstreams) -> None:
    assert create(gateway, "listed", "listed", "beta/co02-other").status == 201
    answer = gateway.post(chat("listed"))
    assert (answer.headers["x-troy-combo"], answer.headers["x-troy-model"]) == ("listed", "alpha/listed")
    assert calls(upstreams, "alpha/listed") == [1]


@pytest.mark.parametrize("change", ["a member goes", "the combo goes"])
def test_co_04_a_request_under_way_keeps_the_combo_it_began_with(
    gateway: Gateway, upstreams: Upstreams, change: str
) -> None:
    name = f"co04-{change.replace(' ', '-')}"
    head = b"HTTP/1.1 500 Oops\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
    upstreams.script("alpha", Reply(framing="raw", steps=(Gate(name), head)), error(500), model=name)
    assert create(gateway, name, f"alpha/{name}", f"beta/{name}").status == 201
    connection = gateway.send(*posted(name))
    until(lambda: calls(upstreams, f"alpha/{name}") == [1])
    if change == "a member goes":
        assert replace(gateway, name, f"alpha/{name}").status == 200
    else:
        assert gateway.admin("DELETE", f"/api/combos/{name}").status == 200
    upstreams.open(name)
    with closing(Open(connection)) as answer:
        assert (answer.status, answer.headers["x-troy-model"]) == (200, f"beta/{name}")
    after = gateway.post(chat(name))
    assert (after.status, after.code) == ((404, "model_not_found") if "combo" in change else (500, None))
    assert calls(upstreams, f"beta/{name}", f"gamma/{name}") == [1, 0]


def test_co_04_a_combo_made_again_begins_anew(gateway: Gateway) -> None:
    name = "co04-again"
    for first in ("alpha", "beta"):
        members = [f"{first}/{name}", "alpha/x1", "alpha/x2"]
        assert create(gateway, name, *members, strategy="round-robin").status == 201
        served = [gateway.post(chat(name)).headers["x-troy-model"] for _ in range(2)]
        assert served == members[:2]
        assert gateway.admin("DELETE", f"/api/combos/{name}").status == 200
        assert gateway.post(chat(name)).status == 404


def test_co_04_an_exhausted_combo_spills_nowhere(gateway: Gateway, upstreams: Upstreams) -> None:
    for who in ("alpha", "beta"):
        upstreams.script(who, error(503), model="co04-spill")
    assert create(gateway, "co04-spill", "alpha/co04-spill", "beta/co04-spill").status == 201
    assert gateway.post(chat("co04-spill")).status == 503
    assert calls(upstreams, "alpha/co04-spill", "beta/co04-spill", "gamma/co04-spill") == [1, 1, 0]


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_co_05_a_name_of_any_script_works_everywhere(gateway: Gateway, client: OpenAI, name: str) -> None:
    assert create(gateway, name, "alpha/co05").status == 201
    forms = {name, f" {name} ", unicodedata.normalize("NFD", name), name.upper(), f"combo/{name}"}
    answers = {form: gateway.post(chat(form)) for form in forms}
    assert {answer.status for answer in answers.values()} == {200}
    assert {unquote(answer.headers["x-troy-combo"]) for answer in answers.values()} == {name}
    assert name in {model.id for model in client.models.list()}
    found: Any = gateway.whole("GET", f"/v1/models/{quote(name, safe='')}", headers=client_headers())
    assert (found.status, found.json()["id"]) == (200, name)
    until(lambda: gateway.metric("requests_total", combo=name) == len(forms))
    request_id = answers[name].headers["x-troy-request-id"]
    assert gateway.admin("GET", f"/api/requests/{request_id}").json()["combo"] == name
    again = create(gateway, unicodedata.normalize("NFD", name), "alpha/co05")
    assert (again.status, again.code) == (409, "conflict")


@pytest.mark.parametrize("number", range(len(BAD_NAMES)))
def test_co_05_a_bad_name_is_refused(gateway: Gateway, number: int) -> None:
    answer = create(gateway, BAD_NAMES[number], "alpha/co05")
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert answer.json()["error"]["details"][0]["field"] == "name"
