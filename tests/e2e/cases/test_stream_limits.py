"""Field cases SF-09 and SF-10: what was accepted is not bought twice, and no abandoned attempt keeps a connection."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.cases.house import NO_BUDGET, combo, ended, keys_used, locks, provider, streamed
from tests.e2e.cases.reads import DONE, OK, ROLE, STOP, said
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import HANG, SILENCE, Drip, Pause, Reply, Upstreams, error, stream

JSON: Final = (("content-type", "application/json"),)
SILENT: Final[dict[str, Reply]] = {
    "no head": HANG,
    "a head": Reply(200, JSON, (SILENCE,)),
    "half a body": Reply(200, JSON, (b'{"choices":[', SILENCE)),
    "a dripping body": Reply(200, JSON, (Drip(b" ", 0.1),)),
}
CLIENTS: Final = 20
REQUESTS: Final = 200
SLOW_503: Final = Reply(503, JSON, tuple(step for _ in range(16) for step in (b" " * (64 << 10), Pause(0.01))))


@pytest.fixture(scope="module")
def closed_port() -> Iterator[int]:
    """Return a port where nobody listens: it is bound, so that nobody else will."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams, closed_port: int) -> Iterator[Gateway]:
    pairs = [f"sf09-{at}" for at in range(len(SILENT))]
    dead: dict[str, Any] = provider(upstreams, "dead", "AB") | {"base_url": f"http://127.0.0.1:{closed_port}/v1"}
    config = {
        "providers": {
            "alpha": provider(upstreams, "alpha", "AB"),
            "beta": provider(upstreams, "beta"),
            "dead": dead,
            "slow": provider(upstreams, "slow"),
        },
        "combos": {
            **{f"c-{model}": combo(f"alpha/{model}", f"beta/{model}") for model in pairs},
            **{f"c-sf10-{at}": combo(f"slow/m{at}", f"beta/sf10-{at}") for at in range(REQUESTS)},
            "c-dead": combo("dead/m1", "beta/sf09-dead"),
            "c-cap": combo(*(f"beta/sf09-cap-{at}" for at in range(40))),
        },
    }
    limits = {"TROY_UPSTREAM_TIMEOUT_MS": "1000", "TROY_BREAKER_FAILURES": "10000", "TROY_MAX_INFLIGHT": "100"}
    with run_gateway(folder, config, **limits, **NO_BUDGET) as running:
        yield running


@pytest.mark.parametrize("kind", SILENT)
def test_sf_09_a_request_that_was_accepted_goes_to_the_next_member_and_never_to_the_next_account(
    gateway: Gateway, upstreams: Upstreams, kind: str
) -> None:
    model = f"sf09-{list(SILENT).index(kind)}"
    upstreams.script("alpha", SILENT[kind], model=model)
    answer = gateway.post(chat(f"c-{model}"))
    assert (answer.status, answer.headers["x-troy-model"]) == (200, f"beta/{model}")
    assert answer.headers["x-troy-trail"] == f"alpha/{model}#A=transient,beta/{model}#beta-keyless=ok"
    assert keys_used(upstreams, "alpha", model) == ["A"]
    until(lambda: upstreams.states("alpha", model=model) == ["left"])


def test_sf_09_alone_it_is_one_call_and_504(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", HANG, model="sf09-alone")
    answer = gateway.post(chat("alpha/sf09-alone"))
    assert (answer.status, answer.code, answer.headers["x-troy-attempts"]) == (504, "timeout", "1")
    assert keys_used(upstreams, "alpha", "sf09-alone") == ["A"]


def test_sf_09_what_was_never_sent_is_tried_freely(gateway: Gateway) -> None:
    answer = gateway.post(chat("c-dead"))
    assert (answer.status, answer.headers["x-troy-attempts"]) == (200, "3")
    assert answer.headers["x-troy-trail"].startswith("dead/m1#A=transient,dead/m1#B=transient,beta/")


def test_sf_09_the_attempts_of_a_request_are_capped(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("beta", *[error(500)] * 40)
    answer = gateway.post(chat("c-cap"))
    upstreams.script("beta")
    assert (answer.status, answer.headers["x-troy-attempts"]) == (500, "30")
    capped = [request.model for request in upstreams.requests("beta") if request.model.startswith("sf09-cap")]
    assert capped == [f"sf09-cap-{at}" for at in range(30)]


def test_sf_10_abandoned_attempts_keep_no_connection(gateway: Gateway, upstreams: Upstreams) -> None:
    ticking = stream(ROLE, OK, *(step for _ in range(10) for step in (said(b"tick"), Pause(0.02))), STOP, DONE)
    upstreams.script("slow", SLOW_503)
    for number in range(REQUESTS):
        upstreams.script("beta", ticking, model=f"sf10-{number}")

    def ask(number: int) -> bool:
        with closing(gateway.stream(chat(f"c-sf10-{number}"))) as answer:
            return bool(answer.read()) if number % 2 else ended(answer.rest())

    with ThreadPoolExecutor(CLIENTS) as pool:
        assert all(pool.map(ask, range(REQUESTS)))
    until(lambda: gateway.metric("account_inflight") == 0)
    assert len(upstreams.requests("slow")) == REQUESTS
    assert "open" not in upstreams.states("slow") + upstreams.states("beta")
    for number in range(10):
        assert ended(streamed(gateway, f"beta/sf10-after-{number}").body)
    assert upstreams.connections()["open"] <= 2 * CLIENTS + 1
    assert "not closed" not in gateway.output()
    assert not [lock for lock in locks(gateway, "beta") if lock["class"] == "saturated"]
