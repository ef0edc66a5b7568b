"""The cases of completions: small and large, with tools, from a failing first member, with several workers."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.figures import DIRECT, FLOOR, OURS, ROUTE, JsonRow, json_row
from tests.bench.loads import Load, measure
from tests.bench.pace import Pace
from tests.bench.servers import Target, app, gateway
from tests.bench.shapes import FAULTS, request

Fleet = Mapping[str, Target]


@dataclass(frozen=True, slots=True)
class Case:
    """The same requests to *servers*, one after the other."""

    name: str
    clients: int
    model: str = "bench/fast"
    tools: bool = False
    stream: bool = False
    servers: Sequence[str] = (ROUTE, OURS)

    def body(self) -> bytes:
        """Return what is sent."""
        return request(self.model, tools=self.tools, stream=self.stream)


CASES: Final = (
    Case("1 KB", 1, servers=(DIRECT, ROUTE, OURS)),
    Case("1 KB", 32, servers=(ROUTE, OURS, FLOOR)),
    Case("1 KB and 5 tools", 32, tools=True),
    Case("100 KB", 32, "bench/kb100", servers=(ROUTE, OURS, FLOOR)),
    Case("1 MB", 8, "bench/mb1"),
    Case("67 events at once", 32, "bench/live-64-0", stream=True),
)


async def completions(fleet: Fleet, pace: Pace) -> list[JsonRow]:
    """Return a row for each of `CASES`, and for each fault. Raises RuntimeError when an answer is no 200."""
    for name in (DIRECT, ROUTE, OURS, FLOOR):
        await measure(fleet[name], request("bench/fast"), clients=32, seconds=pace.warm_s)
    return [await _row(fleet, case, pace) for case in CASES] + await _failing(fleet, pace)


async def _row(fleet: Fleet, case: Case, pace: Pace) -> JsonRow:
    return json_row(case.name, case.clients, [await _round(fleet, case, pace.seconds) for _ in range(pace.pairs)])


async def _round(fleet: Fleet, case: Case, seconds: float) -> dict[str, Load]:
    body = case.body()
    return {name: await measure(fleet[name], body, clients=case.clients, seconds=seconds) for name in case.servers}


async def _failing(fleet: Fleet, pace: Pace) -> list[JsonRow]:
    """Combos whose first member fails, beside the route, which knows no failures: it asks the second member at once."""
    rounds = []
    for _ in range(pace.pairs):
        found = await _round(fleet, Case("", 32, servers=(ROUTE,)), pace.seconds)
        for fault in FAULTS:
            found[fault] = await measure(fleet[OURS], request(f"first-{fault}"), clients=32, seconds=pace.seconds)
        rounds.append(found)
    return [
        json_row(f"first member: {fault}", 32, [{ROUTE: each[ROUTE], OURS: each[fault]} for each in rounds])
        for fault in FAULTS
    ]


async def with_workers(folder: Path, upstream: Target, pace: Pace) -> list[JsonRow]:
    """Return a row for 2 and 4 workers each, where there are as many cores."""
    rows = []
    for workers in (number for number in (2, 4) if number <= (os.cpu_count() or 1) and pace.several):
        async with _several(folder / f"workers{workers}", upstream, workers) as fleet:
            rows.append(await _row(fleet, Case(f"1 KB, {workers} workers", 32), pace))
    return rows


@asynccontextmanager
async def _several(folder: Path, upstream: Target, workers: int) -> AsyncIterator[Fleet]:
    async with (
        gateway(folder, upstream, workers=workers) as ours,
        app(ROUTE, folder, upstream, workers=workers) as route,
    ):
        yield {ROUTE: route, OURS: ours}
