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
    """Where to send requests, and the key that is shown there."""

    port: int
    key: str


@asynccontextmanager
async def _process(*command: str, port: int, env: Mapping[str, str], log: Path) -> AsyncIterator[None]:
    """Run *command* until the block ends; entered when *port* accepts. Raises RuntimeError if it dies."""
    with log.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(*command, stdout=sink, stderr=sink, env={**os.environ, **env})
    try:
        for _ in range(200):
            if process.returncode is not None:
                raise RuntimeError(f"{command} ended; its words are in {log}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            await asyncio.sleep(0.1)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@asynccontextmanager
async def servers(folder: Path) -> AsyncIterator[tuple[Target, Target]]:
    """Yield the upstream and the gateway, both running, with everything they write in *folder*."""
    upstream, gateway = Target(free_port(), "none"), Target(free_port(), "sk-troy-" + secrets.token_hex(24))
    config = folder / "troyproxy.yaml"
    config.write_text(CONFIG.format(upstream=upstream.port), encoding="utf-8")
    env = {
        "TROY_CONFIG": str(config),
        "TROY_DATABASE_URL": f"sqlite+aiosqlite:///{folder}/data/troy.db",
        "TROY_PORT": str(gateway.port),
        "TROY_LOG": "error",
        "BENCH_CLIENT_KEY": gateway.key,
    }
    server = (sys.executable, "-m", "uvicorn", "tests.bench.upstream:app", "--log-level", "error", "--port")
    async with (
        _process(*server, str(upstream.port), port=upstream.port, env={}, log=folder / "upstream.log"),
        _process(sys.executable, "-m", "troyproxy", "serve", port=gateway.port, env=env, log=folder / "gateway.log"),
    ):
        yield upstream, gateway
