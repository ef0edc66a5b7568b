"""Limits of keys over two real gateways and one Redis: counted together, and never lost with the Redis.

The sums themselves are shown in `tests/accounting`, `tests/proxy` and `tests/store/test_redis_limits.py`.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.client import Response
from tests.e2e.gateway import CHAT, KEY, Gateway, chat, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import Upstreams
from tests.services import Redis, redis

CLIENTS: Final = 8
LIMIT: Final = 10
KEYS: Final[dict[str, dict[str, float]]] = {
    "burst": {"requests_per_minute": LIMIT},
    "killed": {"requests_per_minute": LIMIT},
    "hung": {"requests_per_minute": LIMIT},
    "money": {"budget_usd_per_day": 0.01},
    "quiet": {"requests_per_minute": 1e6},
}


@pytest.fixture(scope="module")
def shared() -> Iterator[Redis]:
    with redis(password="limits-password") as server:
        yield server


@pytest.fixture
def running(shared: Redis, pair: tuple[Gateway, Gateway]) -> Iterator[Redis]:
    """The Redis, for a test that stops it; it runs again afterwards, and everybody has noticed."""
    yield shared
    shared.stop()
    until(lambda: not any(counting_together(gateway) for gateway in pair))
    shared.start()


@pytest.fixture(scope="module")
def pair(
    shared: Redis, upstreams: Upstreams, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Gateway, Gateway]]:
    folders = [tmp_path_factory.mktemp(name) for name in ("one", "other")]
    with instance(folders[0], shared, upstreams) as one, instance(folders[1], shared, upstreams) as other:
        yield one, other


def secret(name: str) -> str:
    return f"client-key-0123456789-{name}"


def instance(folder: Path, shared: Redis, upstreams: Upstreams) -> Any:  # noqa: ANN401 - as `run_gateway`
    account = {"name": "A", "api_key": "sk-up-alpha"}
    models = {"m": {"price": {"input": 1000, "output": 1000}}}
    alpha = {"base_url": upstreams.base_url("alpha"), "accounts": [account], "models": models, "max_inflight": 100}
    keys = [{"name": name, "key": secret(name), "limits": limits} for name, limits in KEYS.items()]
    config = {"providers": {"alpha": alpha}, "keys": [{"name": "e2e", "key": KEY}, *keys]}
    return run_gateway(folder, config, TROY_REDIS_URL=shared.url)


def ask(gateway: Gateway, name: str, text: str = "hi") -> Response:
    headers = [("authorization", f"Bearer {secret(name)}"), ("content-type", "application/json")]
    return gateway.whole("POST", CHAT, json.dumps(chat("alpha/m", text)).encode(), headers)


def together(pair: Sequence[Gateway], name: str, times: int) -> Counter[int]:
    """Ask both, several at a time, so many times, and count the statuses."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = pool.map(lambda gateway: ask(gateway, name), islice(cycle(pair), times))
        return Counter(answer.status for answer in answers)


def counting_together(gateway: Gateway) -> bool:
    return bool(gateway.status()["key_limits"]["shared"])


def refilled(since: float) -> int:
    """Return how many requests a bucket may have got back since then."""
    return math.ceil((time.monotonic() - since) * LIMIT / 60)


@pytest.fixture(autouse=True)
def _counting_together(pair: tuple[Gateway, Gateway]) -> None:
    until(lambda: all(counting_together(gateway) for gateway in pair))


def test_two_gateways_admit_exactly_the_limit(pair: tuple[Gateway, Gateway]) -> None:
    began = time.monotonic()
    alone = [gateway.status()["key_limits"]["decided_alone"] for gateway in pair]
    statuses = together(pair, "burst", 60)
    assert [gateway.status()["key_limits"]["decided_alone"] for gateway in pair] == alone
    assert statuses.keys() == {200, 429}
    assert LIMIT <= statuses[200] <= LIMIT + refilled(began)


def test_money_that_one_spent_is_missing_at_the_other(pair: tuple[Gateway, Gateway]) -> None:
    until(lambda: ask(pair[0], "money").status == 402)
    refused = until(lambda: found if (found := ask(pair[1], "money")).status == 402 else None)
    assert refused is not None
    assert refused.code == "budget_exceeded"


def test_a_redis_that_dies_and_comes_back_under_load_neither_refuses_nor_opens(
    pair: tuple[Gateway, Gateway], running: Redis
) -> None:
    began = time.monotonic()
    before = together(pair, "killed", 2 * CLIENTS)
    running.stop()
    during = together(pair, "killed", 40)
    assert not any(counting_together(gateway) for gateway in pair)
    running.start()
    until(lambda: all(counting_together(gateway) for gateway in pair))
    after = together(pair, "killed", 40)
    seen = before + during + after
    assert seen.keys() == {200, 429}
    # Each counts by itself meanwhile: at most the limit each, whatever the Redis has forgotten.
    assert LIMIT <= seen[200] <= 2 * (LIMIT + refilled(began))
    assert sum(gateway.status()["key_limits"]["decided_alone"] for gateway in pair) >= 1


def test_a_redis_that_hangs_holds_up_nobody_for_long(pair: tuple[Gateway, Gateway], running: Redis) -> None:
    began = time.monotonic()
    running.freeze()
    try:
        statuses = together(pair, "hung", 60)
    finally:
        running.thaw()
    until(lambda: all(counting_together(gateway) for gateway in pair))
    assert statuses.keys() == {200, 429}
    assert LIMIT <= statuses[200] <= 2 * (LIMIT + refilled(began))


def test_the_password_is_in_no_output(pair: tuple[Gateway, Gateway], running: Redis) -> None:
    running.stop()
    until(lambda: ask(pair[0], "quiet").status and not counting_together(pair[0]))
    assert ("by itself" in pair[0].output(), "limits-password" in pair[0].output()) == (True, False)
