"""The load of completions: by wrk where it is installed, else by a client of our own, which is slower itself."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.client import Times, own_client
from tests.bench.servers import Target

SCRIPT: Final = Path(__file__).with_name("post.lua")
MISSING: Final = "wrk is not installed (Debian package wrk): the load comes from a client in Python, which costs more"


@dataclass(frozen=True, slots=True)
class Load:
    """What one run saw. *cpu_s*: processor time of the server and its children meanwhile; None if unknown."""

    count: int
    seconds: float
    p50_ms: float
    p99_ms: float
    cpu_s: float | None

    @property
    def per_second(self) -> float:
        return self.count / self.seconds

    @property
    def cpu_us(self) -> float | None:
        """Microseconds of processor time for one request."""
        return None if self.cpu_s is None else self.cpu_s / self.count * 1e6


def wrk() -> str | None:
    """Return where wrk is; None where it is not installed."""
    return shutil.which("wrk")


async def measure(target: Target, body: bytes, *, clients: int, seconds: float) -> Load:
    """Return what *clients* connections got out of *target*, each with one request at a time.

    Raises RuntimeError when an answer was no 200 or a connection failed.
    """
    before = target.cpu_s()
    found = await _by_wrk(target, body, clients, seconds) if wrk() else await _by_own(target, body, clients, seconds)
    return found(_spent(before, target.cpu_s()))


def _spent(before: float | None, after: float | None) -> float | None:
    return after - before if before is not None and after is not None else None


Finish = Callable[[float | None], Load]
"""Takes the processor time."""


async def _by_own(target: Target, body: bytes, clients: int, seconds: float) -> Finish:
    times: Times = await own_client(target, body, clients=clients, seconds=seconds)
    return lambda cpu_s: Load(times.count, times.seconds, times.at(0.5) * 1e3, times.at(0.99) * 1e3, cpu_s)


async def _by_wrk(target: Target, body: bytes, clients: int, seconds: float) -> Finish:
    with tempfile.NamedTemporaryFile() as file:
        file.write(body)
        file.flush()
        url = f"http://127.0.0.1:{target.port}/v1/chat/completions"
        options = ("-t1", f"-c{clients}", f"-d{max(1, round(seconds))}s", "--timeout", "10s", "-s", str(SCRIPT))
        process = await asyncio.create_subprocess_exec(
            "wrk", *options, url, "--", file.name, target.key, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
    return read_wrk(output.decode())


def read_wrk(output: str) -> Finish:
    """Return what wrk and `SCRIPT` wrote. Raises RuntimeError when any answer was no 2xx, or none at all."""
    found = json.loads(output.rstrip("\n").rpartition("\n")[2])
    if found["refused"] or found["broken"] or not found["requests"]:
        raise RuntimeError(f"the load failed: {found}")
    count, seconds = found["requests"], found["us"] / 1e6
    return lambda cpu_s: Load(count, seconds, found["p50_us"] / 1e3, found["p99_us"] / 1e3, cpu_s)
