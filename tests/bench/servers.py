"""The two servers of the benchmark: an upstream that answers at once, and the gateway in front of it."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.services import free_port

CONFIG = """
providers:
  bench: {{base_url: "http://127.0.0.1:{upstream}/v1", auth: none, models: {{fast: {{tools: true}}}}}}
keys:
  - {{name: bench, key: "env:BENCH_CLIENT_KEY"}}
"""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to send requests, the key that is shown there, and the process that answers."""

    port: int
    key: str
    pid: int

    def cpu_s(self) -> float | None:
        """Return the processor time the process has used so far, all threads, user and system; None if unknown."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def _process(*command: str, port: int, env: Mapping[str, str], log: Path) -> AsyncIterator[int]:
    """Run *command* until the block ends; entered, with its pid, when *port* accepts. Raises RuntimeError."""
    with log.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(*command, stdout=sink, stderr=sink, env={**os.environ, **env})
    try:
        await _accepts(process, port, log)
        yield process.pid
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _accepts(process: asyncio.subprocess.Process, port: int, log: Path) -> None:
    for _ in range(200):
        if process.returncode is not None:
            raise RuntimeError(f"a server ended: {_tail(log)}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        await asyncio.sleep(0.1)
    raise RuntimeError(f"nobody listens on port {port} after 20 s")


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-2000:]


@asynccontextmanager
async def servers(folder: Path) -> AsyncIterator[tuple[Target, Target]]:
    """Yield the upstream and the gateway, both running, with everything they write in *folder*."""
    upstream, port, key = free_port(), free_port(), "sk-troy-" + secrets.token_hex(24)
    config = folder / "troyproxy.yaml"
    config.write_text(CONFIG.format(upstream=upstream), encoding="utf-8")
    env = {
        "TROY_CONFIG": str(config),
        "TROY_DATABASE_URL": f"sqlite+aiosqlite:///{folder}/data/troy.db",
        "TROY_PORT": str(port),
        "TROY_LOG": "warning",
        "BENCH_CLIENT_KEY": key,
    }
    mock = (sys.executable, "-m", "tests.bench.upstream", str(upstream))
    serve = (sys.executable, "-m", "troyproxy", "serve")
    async with (
        _process(*mock, port=upstream, env={}, log=folder / "upstream.log") as upstream_pid,
        _process(*serve, port=port, env=env, log=folder / "gateway.log") as gateway_pid,
    ):
        yield Target(upstream, "none", upstream_pid), Target(port, key, gateway_pid)
