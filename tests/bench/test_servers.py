"""A very short run of each load against each server: everything arrives whole, and processes are accounted for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.bench import loads
from tests.bench.figures import DIRECT, FLOOR, OURS, ROUTE
from tests.bench.loads import measure
from tests.bench.servers import Target, app, gateway, upstream
from tests.bench.shapes import FAULTS, request
from tests.bench.streams import Plan, listen
from tests.measuring import processes_unmeasured

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def fleet(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Target]]:
    folder = tmp_path_factory.mktemp("bench")
    with processes_unmeasured():
        async with _running(folder) as found:
            yield found


@asynccontextmanager
async def _running(folder: Path) -> AsyncIterator[dict[str, Target]]:
    async with (
        upstream(folder) as above,
        gateway(folder / "gateway", above) as ours,
        app(ROUTE, folder, above) as route,
        app(FLOOR, folder, above) as floor,
    ):
        yield {DIRECT: above, OURS: ours, ROUTE: route, FLOOR: floor}


@pytest.mark.parametrize("name", [DIRECT, OURS, ROUTE, FLOOR])
async def test_every_server_answers_every_size(
    fleet: dict[str, Target], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loads, "wrk", lambda: None)
    for model in ("bench/fast", "bench/kb100", "bench/mb1"):
        assert (await measure(fleet[name], request(model), clients=2, seconds=0.05)).count >= 2


@pytest.mark.parametrize("name", [DIRECT, OURS, ROUTE, FLOOR])
async def test_every_server_streams(fleet: dict[str, Target], name: str) -> None:
    body = request("bench/live-64-0", stream=True)
    plan = Plan(clients=3, each=2, moments=64, spread_s=0.0)
    run = await listen(fleet[name], body, plan)
    assert (run.whole, run.broken, run.events) == (6, [], plan.events)


async def test_the_gateway_serves_though_the_first_member_fails(
    fleet: dict[str, Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loads, "wrk", lambda: None)
    for fault in FAULTS:
        assert (await measure(fleet[OURS], request(f"first-{fault}"), clients=2, seconds=0.05)).count >= 2


@pytest.mark.skipif(loads.wrk() is None, reason="needs wrk (Debian package wrk)")
async def test_wrk_makes_the_load_and_tells_what_it_saw(fleet: dict[str, Target]) -> None:
    load = await measure(fleet[DIRECT], request("bench/fast", tools=True), clients=2, seconds=1)
    assert load.count > 100
    assert 0 < load.p50_ms <= load.p99_ms


async def test_a_stream_that_is_not_whole_is_told(fleet: dict[str, Target]) -> None:
    body = request("bench/live-50-100", stream=True).replace(b"live-50-100", b"live-3-2")
    run = await listen(fleet[DIRECT], body, Plan(clients=1, each=1, moments=4))
    assert (run.whole, len(run.broken)) == (0, 1)


async def test_processor_time_and_memory_are_those_of_the_process(fleet: dict[str, Target]) -> None:
    assert (fleet[OURS].cpu_s() or 0) > 0
    assert (fleet[OURS].memory_mb() or 0) > 10
