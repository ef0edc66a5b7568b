"""The auto engine in a real process in front of real upstreams: packs, budgets, memory, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway, chat, run_gateway, sdk
from tests.e2e.shapes import completion
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Pause, Reply, Upstreams, error

PACKS = {"ship-fast": "quick", "cost-saver": "cheap", "quality-first": "clever", "offline-friendly": "roomy"}
PRICES = {"quick": 6.0, "cheap": 0.1, "clever": 6.0, "roomy": 6.0}
ENV = {"TROY_AUTO_EXPLORATION": "0", "TROY_RETRY_BUDGET": "0"}
TRUSTED = 10
"""Answers after which a latency is believed."""


def providers(upstreams: Upstreams, prices: Mapping[str, float]) -> dict[str, object]:
    return {
        name: {
            "base_url": upstreams.base_url(name),
            "accounts": [{"name": "A", "api_key": f"sk-up-{name}"}],
            "models": {
                "m": {
                    "price": {"input": usd, "output": usd},
                    "fitness": {"default": 1.0 if name == "clever" else 0.3},
                }
            },
        }
        for name, usd in prices.items()
    }


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    for name in PRICES:
        upstreams.script(name, answer(name))
    with run_gateway(folder, {"providers": providers(upstreams, PRICES)}, **ENV) as running:
        for name in PRICES:
            for _ in range(TRUSTED):
                assert running.post(chat(f"{name}/m")).status == 200
        yield running


def answer(name: str) -> Reply:
    """Return the answer of one upstream: only `quick` is quick, and only `roomy` has not said that he is half empty."""
    body = completion(f"I am {name}")
    said = "" if name == "roomy" else "x-ratelimit-limit-requests: 100\r\nx-ratelimit-remaining-requests: 40\r\n"
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{said}content-length: {len(body)}\r\n\r\n"
    wait = () if name == "quick" else (Pause(0.12),)
    return Reply(framing="raw", steps=(*wait, head.encode() + body))


def first(gateway: Gateway, model: str = "auto", **headers: str) -> str:
    served = gateway.post(chat(model, max_tokens=1000), **headers)
    assert served.status == 200, served.body
    return str(served.headers["x-troy-model"]).partition("/")[0]


def test_four_packs_pick_four_members_of_one_pool_once_and_again(gateway: Gateway) -> None:
    for _ in range(3):  # from the second on there is a last known good for each
        assert {pack: first(gateway, x_troy_mode=pack) for pack in PACKS} == PACKS


@pytest.mark.parametrize(
    ("name", "expected"), [("auto/fast", "quick"), ("auto/cheap", "cheap"), ("auto/smart", "clever")]
)
def test_a_variant_is_its_pack(gateway: Gateway, name: str, expected: str) -> None:
    told = gateway.admin("POST", "/api/explain", chat(name, max_tokens=1000)).json()["auto"][0]["candidates"]
    assert told[0]["candidate"] == f"{expected}/m#A"


def test_the_sdk_reaches_auto(gateway: Gateway) -> None:
    with sdk(gateway) as client:
        made = client.chat.completions.create(
            model="auto/cheap", messages=[{"role": "user", "content": "hi"}], max_tokens=9
        )
    assert made.choices[0].message.content == "I am cheap"


def test_a_strict_budget_that_nobody_fits_is_402_with_the_cheapest_estimate(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    before = {name: len(upstreams.requests(name)) for name in PRICES}
    strict = {"x_troy_budget_usd": "0.00001", "x_troy_budget_policy": "strict"}
    refused = gateway.post(chat("auto/cheap", max_tokens=1000), **strict)
    told = refused.json()["error"]
    assert (refused.status, told["code"], told["type"]) == (402, "budget_exceeded", "insufficient_quota")
    assert "$0.000100" in told["message"]
    assert {name: len(upstreams.requests(name)) for name in PRICES} == before


def test_a_loose_budget_takes_the_cheapest(gateway: Gateway) -> None:
    assert first(gateway, "auto/fast", x_troy_budget_usd="0.00001") == "cheap"


def test_a_session_stays_until_its_target_fails(tmp_path: Path, upstreams: Upstreams) -> None:
    upstreams.script("low", error(500), HEALTHY)
    upstreams.script("high", HEALTHY, HEALTHY, error(500), HEALTHY)
    mine, other = ({"x_troy_session": name} for name in ("s1", "s2"))
    pool = providers(upstreams, {"low": 0.1, "high": 9.0})
    with run_gateway(tmp_path, {"providers": pool}, **ENV) as gateway:
        assert first(gateway, "auto/lkgp", **mine) == "high"  # the better one failed
        assert gateway.admin("POST", "/api/cooldowns/clear", {}).status == 200
        assert first(gateway, "auto/lkgp", **mine) == "high"
        assert first(gateway, "auto/lkgp", **other) == "low"
        assert first(gateway, "auto/lkgp", **mine) == "low"  # who was known failed
        assert gateway.admin("POST", "/api/cooldowns/clear", {}).status == 200
        assert first(gateway, "auto/lkgp", **mine) == "low"


def test_rows_and_metrics_carry_the_auto_id(gateway: Gateway) -> None:
    served = gateway.post(chat("auto/cheap", max_tokens=1000))
    request_id = served.headers["x-troy-request-id"]
    until(lambda: any(row["request_id"] == request_id for row in gateway.rows()))
    (row,) = (row for row in gateway.rows() if row["request_id"] == request_id)
    assert (row["combo"], row["strategy"]) == ("auto/cheap", "auto")
    text = gateway.get("/metrics").body.decode()
    assert 'troyproxy_auto_picks_total{combo="auto/cheap",model="m",provider="cheap"}' in text


def test_a_new_account_is_in_the_pool_with_the_next_request(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("cheap", HEALTHY, key="sk-new")
    made = gateway.admin("POST", "/api/connections", {"provider": "cheap", "name": "B", "api_key": "sk-new"})
    assert made.status == 201
    told = gateway.admin("POST", "/api/explain", chat("auto")).json()["auto"][0]["candidates"]
    gone = gateway.admin("DELETE", "/api/connections/cheap%23B")
    assert "cheap/m#B" in [row["candidate"] for row in told]
    assert gone.status == 200
