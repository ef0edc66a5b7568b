"""A combo of three: the first is rate-limited for 3 s, the second resets the connection, the third works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from openai import OpenAI

from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, RESET, Upstreams, error

NAMES: Final = ("alpha", "beta", "gamma")
MODELS: Final = ("whole", "stream", "again", "circuit")
TRAIL: Final = "alpha/{0}#alpha-keyless=rate,beta/{0}#beta-keyless=transient,gamma/{0}#gamma-keyless=ok"


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {
        "providers": {name: {"base_url": upstreams.base_url(name), "auth": "none"} for name in NAMES},
        "combos": {f"c-{model}": {"members": [f"{name}/{model}" for name in NAMES]} for model in MODELS},
    }
    upstreams.script("alpha", error(429, "slow down", retry_after="3"))
    upstreams.script("beta", RESET)
    with run_gateway(folder, config) as running:
        yield running


def calls(upstreams: Upstreams, model: str) -> list[int]:
    return [len(upstreams.requests(name, model=model)) for name in NAMES]


def test_the_client_gets_the_thirds_answer(client: OpenAI, upstreams: Upstreams) -> None:
    raw = client.chat.completions.with_raw_response.create(**chat("c-whole"))  # type: ignore[call-overload]
    assert raw.parse().choices[0].message.content == "whole by gamma"
    assert raw.headers["x-troy-attempts"] == "3"
    assert raw.headers["x-troy-trail"] == TRAIL.format("whole")
    assert raw.headers["x-troy-model"] == "gamma/whole"
    assert raw.headers["x-troy-combo"] == "c-whole"
    assert calls(upstreams, "whole") == [1, 1, 1]


def test_the_client_gets_the_thirds_stream(client: OpenAI, upstreams: Upstreams) -> None:
    raw = client.chat.completions.with_raw_response.create(**chat("c-stream"), stream=True)  # type: ignore[call-overload]
    assert raw.headers["x-troy-trail"] == TRAIL.format("stream")
    text = "".join(choice.delta.content or "" for chunk in raw.parse() for choice in chunk.choices)
    assert text == "stream by gamma"
    assert calls(upstreams, "stream") == [1, 1, 1]


def test_the_next_request_goes_to_the_third_at_once_and_the_first_is_tried_again_after_3_s(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    assert gateway.post(chat("c-again")).status == 200
    answer = gateway.post(chat("c-again"))
    assert answer.headers["x-troy-trail"] == "gamma/again#gamma-keyless=ok"
    assert calls(upstreams, "again") == [1, 1, 2]

    def tried_again() -> bool:
        assert gateway.post(chat("c-again")).status == 200
        return len(upstreams.requests("alpha", model="again")) > 1

    until(tried_again)
    first, second, *_ = upstreams.requests("alpha", model="again")
    assert second.at - first.at >= 3.0


def test_three_failures_of_the_second_open_its_circuit(gateway: Gateway, upstreams: Upstreams) -> None:
    def failed_thrice() -> bool:
        assert gateway.post(chat("c-circuit")).status == 200
        return len(upstreams.requests("beta", model="circuit")) >= 3

    until(failed_thrice)
    assert gateway.metric("circuit_state", provider="beta", model="circuit") == 2
    circuits = {(c["provider"], c["model"]): c["state"] for c in gateway.status()["circuits"]}
    assert circuits["beta", "circuit"] == "open"
    answer = gateway.post(chat("c-circuit"))
    assert "beta/circuit=circuit" in answer.headers["x-troy-skipped"]
    assert len(upstreams.requests("beta", model="circuit")) == 3


def test_the_metrics_count_what_happened(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", HEALTHY, model="counted")
    before = gateway.metric("requests_total", outcome="ok", status="200")
    assert gateway.post(chat("alpha/counted")).status == 200
    until(lambda: gateway.metric("requests_total", outcome="ok", status="200") == before + 1)
    assert gateway.metric("attempts_total", provider="alpha", outcome="ok") == 1
