"""Field cases MN-01, MN-03 and MN-04: the prefix is ours, the rest is the upstream's; nothing is guessed in silence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cases.house import combo, provider
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.shapes import dumps
from tests.e2e.upstreams import Upstreams

NAMES: Final = ("openrouter", "groq", "alpha", "agy")
REACHES: Final = {
    "openrouter/anthropic/claude-x": ("openrouter", "anthropic/claude-x"),
    "openrouter/openrouter/auto": ("openrouter", "openrouter/auto"),
    "openrouter/auto": ("openrouter", "openrouter/auto"),
    "groq/openai/gpt-oss-120b": ("groq", "openai/gpt-oss-120b"),
    "groq/groq/compound": ("groq", "groq/compound"),
    "openrouter/a/b/c/d:free": ("openrouter", "a/b/c/d:free"),
    "openrouter//x": ("openrouter", "/x"),
    "openrouter/alpha/m1": ("openrouter", "alpha/m1"),
    "anthropic/listed": ("openrouter", "anthropic/listed"),
    "alpha/nosuch": ("alpha", "nosuch"),
    "ALPHA/m1": ("alpha", "m1"),
    "Alpha/M1": ("alpha", "M1"),
    "alpha/M1": ("alpha", "M1"),
    "alpha/m1:Free": ("alpha", "m1:Free"),
    "AGY/x": ("agy", "x"),
    "openrouter/MASTER-LIGHT": ("openrouter", "MASTER-LIGHT"),
    "  alpha/m1  ": ("alpha", "m1"),
}
NOWHERE: Final = (
    *("nosuch/m1", "anthropic/claude-x", "gpt-nosuch", "/", "alpha/", "/m1", "//", "alpha", "nosuch/", "n" * 100_000),
    *("nosuch/" + "m" * 100_000, "alpha/" + "m" * 100_000, "combo/nosuch", "Ünknown", "\u0000", "a\r\nb"),
)
WRONG: Final[tuple[object, ...]] = ("", "   ", None, 5, 1.5, True, ["a"], {"a": 1}, [])
COMBOS: Final = {
    "MASTER-LIGHT": "MASTER-LIGHT",
    "master-light": "MASTER-LIGHT",
    "Master-Light": "MASTER-LIGHT",
    "combo/master-light": "MASTER-LIGHT",
    "Master-Light2": "Master-Light2",
    "MASTER-LIGHT2": "Master-Light2",
}


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    providers = {name: provider(upstreams, name) for name in NAMES}
    providers["openrouter"]["models"] = {"openrouter/auto": {}, "anthropic/listed": {}}
    combos = {"MASTER-LIGHT": combo("alpha/mn04"), "Master-Light2": combo("alpha/mn04-2")}
    with run_gateway(folder, {"providers": providers, "combos": combos}) as running:
        yield running


def contacted(upstreams: Upstreams) -> int:
    """Return how many requests any upstream has seen."""
    return sum(len(upstreams.requests(name)) for name in NAMES)


@pytest.mark.parametrize("name", REACHES)
def test_mn_01_one_segment_goes_and_the_rest_is_opaque(gateway: Gateway, upstreams: Upstreams, name: str) -> None:
    answer = gateway.post(chat(name))
    who, model = REACHES[name]
    assert (answer.status, answer.headers["x-troy-model"]) == (200, f"{who}/{model}")
    assert upstreams.requests(who)[-1].json["model"] == model
    assert answer.json()["model"] == model


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("number", range(len(NOWHERE)))
def test_mn_03_an_unknown_name_is_404_and_reaches_nobody(
    gateway: Gateway, upstreams: Upstreams, number: int, streams: bool
) -> None:
    before = contacted(upstreams)
    answer = gateway.post(chat(NOWHERE[number], stream=streams))
    error = answer.json()["error"]
    assert (answer.status, error["code"], error["param"]) == (404, "model_not_found", "model")
    assert NOWHERE[number][:50].strip() in error["message"]
    assert len(answer.body) < 2000
    assert contacted(upstreams) == before


@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_mn_03_what_is_no_name_is_400(gateway: Gateway, upstreams: Upstreams, value: object) -> None:
    before = contacted(upstreams)
    answer = gateway.post({**chat("x"), "model": value})
    assert (answer.status, answer.json()["error"]["param"]) == (400, "model")
    assert contacted(upstreams) == before


def test_mn_03_a_missing_name_is_400(gateway: Gateway) -> None:
    answer = gateway.post(dumps({"messages": [{"role": "user", "content": "hi"}]}))
    assert (answer.status, answer.json()["error"]["param"]) == (400, "model")


@pytest.mark.parametrize("name", COMBOS)
def test_mn_04_a_combo_is_found_in_any_case(gateway: Gateway, name: str) -> None:
    answer = gateway.post(chat(name))
    assert (answer.status, answer.headers["x-troy-combo"]) == (200, COMBOS[name])


@pytest.mark.parametrize("name", ["master-light", "Master-LIGHT", "master-light2"])
def test_mn_04_two_combos_that_differ_by_case_cannot_be(gateway: Gateway, name: str) -> None:
    answer = gateway.admin("POST", "/api/combos", {"name": name, "members": ["alpha/m1"]})
    assert (answer.status, answer.code) == (409, "conflict")
