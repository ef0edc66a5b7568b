"""The servers of the benchmark, each a process of its own: the upstream, the gateway, and what it is compared to.

*route* is a plain Starlette route (`peer.py`), *floor* bare ASGI and a bare client (`floor.py`): both by uvicorn with
uvloop and httptools, as the gateway is, without an access log. The gateway has everything on: a key, SQLite, the leak
guard in its default mode, metrics. Only the retry budget is off, since a case in which everything fails first would
spend it.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench import processes
from tests.bench.shapes import FAULTS, SIZES
from tests.services import free_port

LIVE: Final = ("live-64-20", "live-50-100", "live-64-0")
BESIDES: Final = {"TROY_LOG": "warning", "TROY_RETRY_BUDGET": "0", "TROY_DRAIN_S": "0", "TROY_SHUTDOWN_S": "1"}
CONFIG: Final = "troyproxy.yaml"
APPS: Final = {"route": "tests.bench.peer:create_app", "floor": "tests.bench.floor:create_app"}


@dataclass(frozen=True, slots=True)
class Target:
    """Where to send requests, the key that is shown there, and the process that answers."""

    port: int
    key: str
    pid: int

    def cpu_s(self) -> float | None:
        """Return the processor time used so far, in seconds; None if unknown."""
        return processes.cpu_s(self.pid)

    def memory_mb(self) -> float | None:
        """Return the resident memory; None if unknown."""
        return processes.memory_mb(self.pid)


def configuration(upstream: int) -> dict[str, object]:
    """Return the gateway's configuration: a provider, and for each fault one more and a combo that begins with it."""
    where = {"base_url": f"http://127.0.0.1:{upstream}/v1", "auth": "none"}
    models = {name: {"tools": True} for name in (*SIZES, *LIVE)}
    failing = {f"bad{fault}": {**where, "models": {f"fault-{fault}": {"tools": True}}} for fault in FAULTS}
    combos = {f"first-{fault}": {"members": [f"bad{fault}/fault-{fault}", "bench/fast"]} for fault in FAULTS}
    key = {"name": "bench", "key": "env:BENCH_CLIENT_KEY"}
    return {"providers": {"bench": {**where, "models": models}, **failing}, "combos": combos, "keys": [key]}


@asynccontextmanager
async def serving(command: tuple[str, ...], env: Mapping[str, str], port: int, log: Path) -> AsyncIterator[int]:
    """Run a server; yields its pid when *port* accepts. Raises RuntimeError."""
    async with processes.running(command, env, log) as process:
        await processes.accepts(process, port, log)
        yield process.pid


@asynccontextmanager
async def upstream(folder: Path) -> AsyncIterator[Target]:
    """Run the upstream."""
    port = free_port()
    command = (sys.executable, "-m", "tests.bench.upstream", str(port))
    async with serving(command, {}, port, folder / "upstream.log") as pid:
        yield Target(port, "none", pid)


def prepare(folder: Path, config: Mapping[str, object]) -> None:
    """Write *config* into *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML


def environment(folder: Path) -> dict[str, str]:
    """Return the settings of a gateway that has its configuration and its database in *folder*."""
    database = f"sqlite+aiosqlite:///{folder}/data/troy.db"
    return {**BESIDES, "TROY_CONFIG": str(folder / CONFIG), "TROY_DATABASE_URL": database}


def gateway_command(workers: int = 1) -> tuple[str, ...]:
    """Return the command that starts the gateway."""
    return (sys.executable, "-m", "troyproxy", "serve", "--workers", str(workers))


def new_key() -> str:
    """Return a key that a gateway takes."""
    return "sk-troy-" + secrets.token_hex(24)


@asynccontextmanager
async def gateway(folder: Path, upstream: Target, *, workers: int = 1) -> AsyncIterator[Target]:
    """Run the gateway, with everything it writes in *folder*."""
    port, key = free_port(), new_key()
    prepare(folder, configuration(upstream.port))
    env = {**environment(folder), "TROY_PORT": str(port), "BENCH_CLIENT_KEY": key}
    async with serving(gateway_command(workers), env, port, folder / "gateway.log") as pid:
        yield Target(port, key, pid)


@asynccontextmanager
async def app(name: str, folder: Path, upstream: Target, *, workers: int = 1) -> AsyncIterator[Target]:
    """Run one of `APPS`."""
    port = free_port()
    options = f"--factory {APPS[name]} --port {port} --workers {workers} --loop uvloop --http httptools --no-access-log"
    command = (sys.executable, "-m", "uvicorn", *options.split(), "--log-level", "warning")
    env = {"BENCH_UPSTREAM": f"http://127.0.0.1:{upstream.port}"}
    async with serving(command, env, port, folder / f"{name}.log") as pid:
        yield Target(port, "none", pid)


@asynccontextmanager
async def servers(folder: Path) -> AsyncIterator[tuple[Target, Target]]:
    """Yield the upstream and the gateway, both running, with everything they write in *folder*."""
    async with upstream(folder) as above, gateway(folder, above) as ours:
        yield above, ours
