"""A changed file is taken over whole, or not at all."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from tests.e2e.gateway import KEY, Gateway, chat, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import Upstreams


def config(upstreams: Upstreams, *combos: str) -> dict[str, Any]:
    return {
        "keys": [{"name": "e2e", "key": KEY}],
        "providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none"}},
        "combos": {name: {"members": ["alpha/m1"]} for name in ("first", *combos)},
    }


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    with run_gateway(folder, config(upstreams)) as running:
        yield running


def listed(client: OpenAI) -> set[str]:
    return {model.id for model in client.models.list()}


def test_sighup_brings_a_new_combo(gateway: Gateway, client: OpenAI, upstreams: Upstreams) -> None:
    gateway.write_config(config(upstreams, "by-signal"))
    gateway.signal(signal.SIGHUP)
    until(lambda: "by-signal" in listed(client))
    assert gateway.post(chat("by-signal")).headers["x-troy-combo"] == "by-signal"


def test_the_admin_api_brings_a_new_combo(gateway: Gateway, client: OpenAI, upstreams: Upstreams) -> None:
    gateway.write_config(config(upstreams, "by-api"))
    assert gateway.admin("POST", "/api/config/reload").status == 200
    assert "by-api" in listed(client)
    assert gateway.post(chat("by-api")).status == 200


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("combos: [", "troyproxy.yaml"),
        ("combos: {first: {members: [alpha/m1], strategy: hopeful}}", "combos.first.strategy"),
        ("provider: {}", "did you mean providers?"),
        ("keys: [{name: e2e, key: env:NOT_SET, modles: []}]", "modles"),
    ],
)
def test_an_invalid_file_is_refused_with_the_reason_and_changes_nothing(
    gateway: Gateway, client: OpenAI, upstreams: Upstreams, text: str, named: str
) -> None:
    before = listed(client)
    gateway.write_config(text)
    answer = gateway.admin("POST", "/api/config/reload")
    assert 400 <= answer.status < 500
    assert named in answer.json()["error"]["message"]
    assert named in gateway.status()["config"]["error"]
    assert listed(client) == before
    assert gateway.post(chat("first")).status == 200
    gateway.write_config(config(upstreams))
    assert gateway.admin("POST", "/api/config/reload").status == 200
    assert gateway.status()["config"]["error"] is None


def test_an_invalid_file_at_sighup_is_reported_and_changes_nothing(gateway: Gateway, upstreams: Upstreams) -> None:
    gateway.write_config("combos: [")
    gateway.signal(signal.SIGHUP)
    until(lambda: gateway.status()["config"]["error"])
    assert gateway.get("/readyz").json() != {}
    assert gateway.post(chat("first")).status == 200
    gateway.write_config(config(upstreams))
    gateway.signal(signal.SIGHUP)
    until(lambda: gateway.status()["config"]["error"] is None)
    assert gateway.post(chat("first")).status == 200
