"""The gateway's start: from exec until it accepts, and until it answers; in an empty folder, and with its database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench import processes
from tests.bench.figures import Started, known
from tests.bench.pace import Pace
from tests.bench.servers import Target, configuration, environment, gateway_command, new_key, prepare
from tests.services import free_port

EACH_S: Final = 0.003
"""How often it is asked."""
SETTLED_S: Final = 0.5
_ASKED: Final = b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"


async def starts(folder: Path, upstream: Target, pace: Pace) -> list[Started]:
    """Return the first start in an empty folder, and a later one."""
    found: dict[str, list[Started]] = {"first start": [], "later start": []}
    for number in range(pace.starts):
        where = folder / f"start{number}"
        for what, runs in found.items():
            runs.append(await _start(what, where, upstream))
    return [_median(runs) for runs in found.values()]


async def _start(what: str, folder: Path, upstream: Target) -> Started:
    port = free_port()
    prepare(folder, configuration(upstream.port))
    env, log = {**environment(folder), "TROY_PORT": str(port), "BENCH_CLIENT_KEY": new_key()}, folder / "log"
    began = time.perf_counter()
    async with processes.running(gateway_command(), env, log) as process:
        await processes.accepts(process, port, log, each_s=EACH_S)
        accepting = time.perf_counter() - began
        while not await _ready(port):  # noqa: ASYNC110 -- another process wakes nobody
            await asyncio.sleep(EACH_S)
        ready = time.perf_counter() - began
        await asyncio.sleep(SETTLED_S)
        return Started(what, accepting, ready, processes.memory_mb(process.pid))


async def _ready(port: int) -> bool:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_ASKED)
    head = await reader.read(64)
    writer.close()
    return head.startswith(b"HTTP/1.1 200 ")


def _median(runs: Sequence[Started]) -> Started:
    return Started(
        runs[0].what,
        median(run.accepting_s for run in runs),
        median(run.ready_s for run in runs),
        known(run.memory_mb for run in runs),
    )
