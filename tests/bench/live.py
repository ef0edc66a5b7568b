"""The cases of live streams: from one to two hundred at 20 ms between events, and a thousand on a fresh server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

from tests.bench.figures import FLOOR, OURS, ROUTE, Scale, StreamRow, stream_row
from tests.bench.pace import Pace
from tests.bench.servers import Target, app, gateway
from tests.bench.shapes import request
from tests.bench.streams import Plan, Streamed, listen

SERVERS: Final = (ROUTE, OURS, FLOOR)
PERIOD_MS: Final = 20
SCALE_PERIOD_MS: Final = 100
"""A thousand streams at this pace bring as many events a second as two hundred at the other."""
MOMENTS: Final = 64
SCALE_MOMENTS: Final = 50
LONG: Final = 200
"""So many clients listen to two streams each, one after the other; fewer to one."""
TOOLS: Final = 50
SAMPLE_S: Final = 0.2


async def live(fleet: Mapping[str, Target], pace: Pace) -> list[StreamRow]:
    """Return a row for each concurrency, and one with tools, where the leak guard reads along."""
    rows = []
    for clients in pace.stream_clients:
        rounds = [await _round(fleet, clients, SERVERS) for _ in range(pace.pairs if clients >= LONG else pace.points)]
        rows.append(stream_row("live", clients, PERIOD_MS, rounds))
    rounds = [await _round(fleet, TOOLS, (ROUTE, OURS), tools=True) for _ in range(pace.pairs)]
    return [*rows, stream_row("live, 5 tools", TOOLS, PERIOD_MS, rounds)]


async def _round(
    fleet: Mapping[str, Target], clients: int, servers: Sequence[str], *, tools: bool = False
) -> dict[str, Streamed]:
    body = request(f"bench/live-{MOMENTS}-{PERIOD_MS}", stream=True, tools=tools)
    plan = Plan(clients, 1 if clients < LONG else 2, MOMENTS)
    return {name: await listen(fleet[name], body, plan) for name in servers}


async def scale(folder: Path, upstream: Target, pace: Pace) -> list[Scale]:
    """Return what many streams cost each server, one that has just started: nothing is left of other loads."""
    found = []
    for name in SERVERS:
        where = folder / f"scale-{name}"
        where.mkdir()
        server = gateway(where, upstream) if name == OURS else app(name, where, upstream)
        found.append(await _scale(name, server, pace.scale))
    return found


async def _scale(name: str, server: AbstractAsyncContextManager[Target], streams: int) -> Scale:
    body = request(f"bench/live-{SCALE_MOMENTS}-{SCALE_PERIOD_MS}", stream=True)
    async with server as target:
        await listen(target, body, Plan(4, 1, SCALE_MOMENTS))  # what is loaded at the first request is no stream's
        before = target.memory_mb()
        async with _peak(target) as peak:
            run = await listen(target, body, Plan(streams, 1, SCALE_MOMENTS, spread_s=streams / 500))
    each = (max(peak) - before) * 1e3 / streams if peak and before is not None else None
    return _told(name, streams, run, each)


def _told(name: str, streams: int, run: Streamed, kb_each: float | None) -> Scale:
    return Scale(
        server=name,
        streams=streams,
        whole=run.whole,
        broken=len(run.broken),
        cpu_us=run.cpu_us,
        p50_ms=run.p50_ms,
        p99_ms=run.p99_ms,
        gap_spread=run.gap_spread,
        kb_each=kb_each,
    )


@asynccontextmanager
async def _peak(target: Target) -> AsyncIterator[list[float]]:
    """Gather the memory of *target* meanwhile, in MB."""
    seen: list[float] = []

    async def sample() -> None:
        while True:
            if (now := target.memory_mb()) is not None:
                seen.append(now)
            await asyncio.sleep(SAMPLE_S)

    async with asyncio.TaskGroup() as tasks:
        sampling = tasks.create_task(sample())
        try:
            yield seen
        finally:
            sampling.cancel()
