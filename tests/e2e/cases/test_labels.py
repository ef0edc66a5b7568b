"""Field case BM-06: nothing that a client can invent makes a series, or a table, grow."""

from __future__ import annotations

import http.client
import random
import string
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.cases.house import NO_BUDGET, combo, provider
from tests.e2e.gateway import CHAT, Gateway, chat, client_headers, run_gateway
from tests.e2e.shapes import dumps
from tests.e2e.until import until
from tests.e2e.upstreams import Upstreams, whole
from troyproxy.resilience.health import HealthPolicy

NAMES: Final = 1200
EFFORTS: Final = ("", "-high", ":low", "-max")
PATHS: Final = 200
UNKNOWN: Final = whole(b'{"error":{"code":"model_not_found","message":"no such model"}}', 404)


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    upstreams.script("alpha", UNKNOWN)
    config = {
        "providers": {"alpha": provider(upstreams, "alpha", models={"m1": {}})},
        "combos": {"known": combo("alpha/m1")},
    }
    with run_gateway(folder, config, **NO_BUDGET) as running:
        yield running


def series(gateway: Gateway) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    """Return every series there is."""
    families = text_string_to_metric_families(gateway.get("/metrics").body.decode())
    return {(sample.name, tuple(sorted(sample.labels.items()))) for family in families for sample in family.samples}


def bodies(rng: random.Random, count: int) -> Iterator[bytes]:
    """Yield requests for models that nobody knows, of every kind."""
    for number in range(count):
        name = "".join(rng.choices(string.ascii_letters + "/-:é\u2028", k=rng.choice((3, 20, 200))))
        kinds: tuple[object, ...] = (
            f"alpha/{name}",
            name,
            f"nobody/{name}",
            f"combo/{name}",
            f"alpha/{name}" * 100,
            number,
            [name],
            f"alpha/m1{EFFORTS[number % 4]}{name}",
        )
        yield dumps({**chat("x", stream=number % 2 == 0), "model": kinds[number % len(kinds)]})


def invent(gateway: Gateway, seed: int, names: int, paths: int) -> None:
    """Send what clients may invent: models, paths, methods."""
    rng = random.Random(seed)

    def ask(body: bytes) -> int:
        return gateway.whole("POST", CHAT, body, client_headers()).status

    def visit(number: int) -> int:
        method = ("GET", "POST", "DELETE", "BREW", f"M{seed}X{number}")[number % 5]
        with closing(gateway.call(method, f"/v1/{seed}-{number}/x", headers=client_headers())) as answer:
            return answer.status

    with ThreadPoolExecutor(8) as pool:
        assert {*pool.map(ask, bodies(rng, names))} <= {200, 400, 404}
        assert {*pool.map(visit, range(paths))} <= {400, 404, 405}


def test_bm_06_the_number_of_series_does_not_grow_with_what_clients_invent(gateway: Gateway) -> None:
    invent(gateway, 1, 64, 10)
    until(lambda: gateway.metric("inflight_requests") == 0)
    before = series(gateway)
    invent(gateway, 2, NAMES, PATHS)
    until(lambda: gateway.metric("inflight_requests") == 0)
    assert series(gateway) - before == set()
    labels = {value for _, pairs in before for _, value in pairs}
    assert "other" in labels
    assert not [value for value in labels if len(value) > 100]


def one_after_the_other(gateway: Gateway, names: Iterable[str]) -> set[int]:
    """Ask for each name on one kept connection; return the statuses."""
    with closing(http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)) as connection:
        found = set()
        for name in names:
            connection.request("POST", CHAT, dumps(chat(name)), dict(client_headers()))
            answer = connection.getresponse()
            answer.read()
            found.add(answer.status)
    return found


def test_bm_06_the_tables_behind_it_are_bounded(gateway: Gateway) -> None:
    """Each unknown model is benched for five minutes, until the table is full: then an eighth of it goes at once."""
    most = HealthPolicy().max_entries
    names = [[f"alpha/bench-{lane}-{at}" for at in range(most // 8 + 40)] for lane in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert set().union(*pool.map(lambda lane: one_after_the_other(gateway, lane), names)) == {404}
    status = gateway.status()
    assert most - most // 8 <= len(status["cooldowns"]) <= most
    assert len(status["circuits"]) <= most
    assert gateway.get("/readyz").status == 200
