"""Two accounts that prefer two requests at a time, and eight clients that come at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.gateway import CHAT, Gateway, chat, client_headers, run_gateway, sdk
from tests.e2e.shapes import dumps
from tests.e2e.until import until
from tests.e2e.upstreams import HANG, HEALTHY, Upstreams, behind

CLIENTS: Final = 8


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    accounts = [{"name": name, "api_key": f"sk-up-{name}"} for name in ("A", "B")]
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "accounts": accounts}}}
    with run_gateway(folder, config, TROY_MAX_INFLIGHT="2") as running:
        yield running


def test_eight_slow_requests_spread_four_and_four_and_none_is_lost(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", behind("spread"), model="slow")

    def ask(number: int) -> str | None:
        with sdk(gateway) as client:
            answer = client.chat.completions.create(
                model="alpha/slow", messages=[{"role": "user", "content": str(number)}]
            )
        return answer.choices[0].message.content

    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = pool.map(ask, range(CLIENTS))
        until(lambda: len(upstreams.requests("alpha", model="slow")) == CLIENTS)
        assert {name: gateway.metric("account_inflight", account=name) for name in ("A", "B")} == {"A": 4, "B": 4}
        upstreams.open("spread")
        assert list(answers) == ["waited for"] * CLIENTS
    spread = Counter(request.key for request in upstreams.requests("alpha", model="slow"))
    assert spread == {"sk-up-A": 4, "sk-up-B": 4}
    until(lambda: gateway.metric("account_inflight") == 0)
    assert gateway.metric("account_inflight") == 0


@pytest.mark.parametrize("stream", [False, True])
def test_the_gauge_returns_to_0_when_all_clients_hang_up_before_the_first_byte(
    gateway: Gateway, upstreams: Upstreams, stream: bool
) -> None:
    model = f"never-{stream}"
    upstreams.script("alpha", HANG, model=model)
    body = dumps(chat(f"alpha/{model}", stream=stream))
    waiting = [gateway.send("POST", CHAT, body, client_headers()) for _ in range(CLIENTS)]
    until(lambda: len(upstreams.requests("alpha", model=model)) == CLIENTS)
    for connection in waiting:
        connection.close()
    until(lambda: upstreams.states("alpha", model=model) == ["left"] * CLIENTS)
    until(lambda: gateway.metric("account_inflight") == 0)
    until(lambda: gateway.metric("inflight_requests") == 0)
    rows = until(lambda: [r for r in gateway.rows() if r["requested_model"] == f"alpha/{model}"][CLIENTS - 1 :])
    assert rows[0]["outcome"] == "cancelled"
    assert rows[0]["status"] == 499


def test_clients_that_hang_up_lock_nothing(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", HANG, HEALTHY, model="left")
    connection = gateway.send("POST", CHAT, dumps(chat("alpha/left")), client_headers())
    until(lambda: upstreams.requests("alpha", model="left"))
    connection.close()
    until(lambda: upstreams.states("alpha", model="left") == ["left"])
    answer = gateway.post(chat("alpha/left"))
    assert (answer.status, answer.headers["x-troy-attempts"]) == (200, "1")
    assert not [lock for lock in gateway.status()["cooldowns"] if lock["model"] == "left"]
