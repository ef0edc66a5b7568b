"""A circuit whose wait is over is tried by exactly one of many concurrent requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import Upstreams, behind, error

CLIENTS: Final = 50


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {
        "providers": {name: {"base_url": upstreams.base_url(name), "auth": "none"} for name in ("alpha", "beta")},
        "combos": {"both": {"members": ["alpha/m1", "beta/m1"]}},
    }
    with run_gateway(folder, config, TROY_BREAKER_OPEN_S="2") as running:
        yield running


def state(gateway: Gateway) -> str:
    return next((str(c["state"]) for c in gateway.status()["circuits"] if c["provider"] == "alpha"), "closed")


def test_exactly_one_of_fifty_concurrent_requests_probes_and_its_success_closes_the_circuit(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    upstreams.script("alpha", error(500), error(500), error(500), behind("well again"))
    for _ in range(3):
        assert gateway.post(chat("alpha/m1")).status == 500
    assert state(gateway) == "open"
    until(lambda: state(gateway) == "half_open" and not gateway.status()["cooldowns"])
    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = pool.map(lambda _: gateway.post(chat("both")), range(CLIENTS))
        until(lambda: len(upstreams.requests("beta")) == CLIENTS - 1)
        until(lambda: len(upstreams.requests("alpha")) == 4)
        upstreams.open("well again")
        served = Counter((answer.status, answer.headers["x-troy-model"]) for answer in answers)
    assert served == {(200, "alpha/m1"): 1, (200, "beta/m1"): CLIENTS - 1}
    assert len(upstreams.requests("alpha")) == 4
    assert state(gateway) == "closed"
