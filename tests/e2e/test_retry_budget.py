"""The retry budget of a real process: a total outage is not multiplied, and who was spared an attempt is told so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.client import Response
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.upstreams import Upstreams, error

REQUESTS: Final = 120
SHARE: Final = 0.2
FLOOR_A_SECOND: Final = 10
MEMBERS: Final = ("one", "two", "three", "four")


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    providers = {name: {"base_url": upstreams.base_url(name), "auth": "none"} for name in MEMBERS}
    # A model of its own for each request, so that no circuit opens and spares the upstreams in its stead.
    combos = {f"c{at}": {"members": [f"{name}/m{at}" for name in MEMBERS]} for at in range(REQUESTS)}
    for name in MEMBERS:
        upstreams.script(name, error(500))
    with run_gateway(folder, {"providers": providers, "combos": combos}, TROY_RETRY_BUDGET=str(SHARE)) as running:
        yield running


@pytest.fixture(scope="module")
def outage(gateway: Gateway) -> tuple[list[Response], float]:
    """The answers to many requests while every upstream fails, and how many seconds they took."""
    since = time.monotonic()
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda at: gateway.post(chat(f"c{at}")), range(REQUESTS)))
    return answers, time.monotonic() - since


def test_the_attempts_of_an_outage_stay_within_the_budget(
    outage: tuple[list[Response], float], upstreams: Upstreams
) -> None:
    _, seconds = outage
    attempts = sum(len(upstreams.requests(name)) for name in MEMBERS)
    allowed = REQUESTS * (1 + SHARE) + FLOOR_A_SECOND * (seconds + 10)  # the floor of the whole window is there at once
    assert REQUESTS < attempts <= allowed + 16  # those that were under way when it was spent
    assert attempts < REQUESTS * len(MEMBERS)


def test_whoever_was_spared_an_attempt_has_the_last_error_and_is_told(outage: tuple[list[Response], float]) -> None:
    answers, _ = outage
    assert {answer.status for answer in answers} == {500}
    spared = [answer for answer in answers if answer.headers.get("x-troy-retry-budget") == "spent"]
    assert spared
    assert max(int(answer.headers["x-troy-attempts"]) for answer in spared) < len(MEMBERS)
