"""Field cases BM-01 and BM-03: one probe tries a recovering upstream, and what we refuse ourselves is no evidence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cases.house import (
    NO_BUDGET,
    calls,
    circuit,
    combo,
    failures,
    keys_used,
    locks,
    posted,
    provider,
    secret,
    together,
)
from tests.e2e.client import Response
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import HANG, HEALTHY, Upstreams, behind, error

MODELS: Final = ("bm01", "bm01-left", "bm01-failed", "bm03")
BOOM: Final = error(500, "boom")
CLIENTS: Final = 50


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    listed: dict[str, object] = {model: {} for model in MODELS}
    config = {
        "providers": {
            "alpha": provider(upstreams, "alpha", models=listed),
            "beta": provider(upstreams, "beta", models=listed),
            "gamma": provider(upstreams, "gamma", "AB", models={"bm03": {}, "other": {}}),
        },
        "combos": {f"c-{model}": combo(f"alpha/{model}", f"beta/{model}") for model in MODELS},
    }
    with run_gateway(folder, config, TROY_BREAKER_OPEN_S="1", TROY_MAX_INFLIGHT="1000", **NO_BUDGET) as running:
        yield running


def trip(gateway: Gateway, upstreams: Upstreams, model: str, *then: object) -> None:
    """Open the circuit of *model* and wait until it is half-open and no cooldown is left."""
    upstreams.script("alpha", BOOM, BOOM, BOOM, *then, model=model)  # type: ignore[arg-type]
    assert {gateway.post(chat(f"alpha/{model}")).status for _ in range(3)} == {500}
    assert circuit(gateway, "alpha", model) == "open"
    refused = gateway.post(chat(f"alpha/{model}"))
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (503, "all_unavailable", "1")
    until(lambda: circuit(gateway, "alpha", model) == "half_open" and not locks(gateway, "alpha", model))
    assert calls(upstreams, f"alpha/{model}") == [3]


def test_bm_01_one_probe_and_no_more(gateway: Gateway, upstreams: Upstreams) -> None:
    trip(gateway, upstreams, "bm01", behind("bm01"), HEALTHY)
    names = ["c-bm01", "alpha/bm01"] * CLIENTS
    answers: list[tuple[str, Response]] = []

    def ask(name: str) -> None:
        answers.append((name, gateway.post(chat(name))))

    with ThreadPoolExecutor(2 * CLIENTS) as pool:
        done = [pool.submit(ask, name) for name in names]
        until(lambda: len(answers) == 2 * CLIENTS - 1)
        assert calls(upstreams, "alpha/bm01") == [4]
        upstreams.open("bm01")
        for one in done:
            one.result()
    refused = [answer for name, answer in answers if name == "alpha/bm01" and answer.status != 200]
    assert len(refused) >= CLIENTS - 1
    assert {(answer.status, answer.code) for answer in refused} == {(503, "all_unavailable")}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
    assert {answer.status for name, answer in answers if name == "c-bm01"} == {200}
    assert circuit(gateway, "alpha", "bm01") == "closed"
    assert {answer.status for answer in together(gateway, [chat("alpha/bm01")] * 10)} == {200}
    assert calls(upstreams, "alpha/bm01") == [14]


def test_bm_01_a_probe_whose_client_leaves_is_given_back(gateway: Gateway, upstreams: Upstreams) -> None:
    trip(gateway, upstreams, "bm01-left", HANG, HEALTHY)
    with closing(gateway.send(*posted("alpha/bm01-left"))):
        until(lambda: calls(upstreams, "alpha/bm01-left") == [4])
        assert gateway.post(chat("alpha/bm01-left")).status == 503
    until(lambda: upstreams.states("alpha", model="bm01-left")[3] == "left")
    until(lambda: gateway.metric("inflight_requests") == 0)
    assert circuit(gateway, "alpha", "bm01-left") == "half_open"
    assert gateway.post(chat("alpha/bm01-left")).status == 200
    assert circuit(gateway, "alpha", "bm01-left") == "closed"


def test_bm_01_a_probe_that_fails_doubles_the_wait(gateway: Gateway, upstreams: Upstreams) -> None:
    trip(gateway, upstreams, "bm01-failed", BOOM, HEALTHY)
    assert gateway.post(chat("alpha/bm01-failed")).status == 500
    (found,) = [it for it in gateway.status()["circuits"] if it["model"] == "bm01-failed" and it["provider"] == "alpha"]
    assert found["state"] == "open"
    failed_at = upstreams.requests("alpha", model="bm01-failed")[-1].at
    assert found["until"] - failed_at == pytest.approx(2, abs=0.5)
    assert gateway.post(chat("alpha/bm01-failed")).headers["retry-after"] in {"1", "2"}


def test_bm_03_a_limit_of_one_model_on_one_account_is_no_more_than_that(gateway: Gateway, upstreams: Upstreams) -> None:
    later = {letter: error(429, "slow down", retry_after=wait) for letter, wait in (("A", "30"), ("B", "3"))}
    upstreams.script("gamma", later["A"], HEALTHY, key=secret("gamma", "A"), model="bm03")
    upstreams.script("gamma", HEALTHY, later["B"], HEALTHY, key=secret("gamma", "B"), model="bm03")
    assert gateway.post(chat("gamma/bm03")).headers["x-troy-account"] == "B"
    assert gateway.post(chat("gamma/other")).headers["x-troy-account"] == "A"
    assert gateway.post(chat("gamma/bm03")).status == 429
    before = locks(gateway, "gamma", "bm03")
    counted = failures(gateway, "gamma", "bm03", "rate")
    answers = together(gateway, [chat("gamma/bm03")] * CLIENTS, at_once=10)
    refused = [answer for answer in answers if answer.status == 429]
    assert {answer.code for answer in refused} == {"rate_limited"}
    assert locks(gateway, "gamma", "bm03") == before
    assert failures(gateway, "gamma", "bm03", "rate") == counted == 2
    assert circuit(gateway, "gamma", "bm03") == "closed"
    ends = min(lock["until"] for lock in before)
    served = until(lambda: answer if (answer := gateway.post(chat("gamma/bm03"))).status == 200 else None)
    assert served is not None
    assert time.time() >= ends
    assert keys_used(upstreams, "gamma", "bm03")[:3] == ["A", "B", "B"]
    assert len(keys_used(upstreams, "gamma", "bm03")) == 4
