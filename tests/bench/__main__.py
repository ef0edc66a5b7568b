"""What the gateway costs: the same requests through it and straight to the upstream, all on this machine.

    python -m tests.bench [--seconds S] [--pairs N]

Two processes of their own, an upstream that answers at once and `troyproxy serve` in front of it, are called by one raw
HTTP/1.1 client with keep-alive. Pairs alternate, so that a busy machine hurts both sides; the median pair counts. The
ratio is the number to watch: absolute times belong to the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

from tests.bench.client import Load, measure
from tests.bench.servers import Target, servers

SHAPES = {"json": False, "stream": True}


async def _pair(targets: tuple[Target, Target], *, stream: bool, seconds: float) -> tuple[Load, Load]:
    direct = await measure(targets[0], stream=stream, seconds=seconds)
    return direct, await measure(targets[1], stream=stream, seconds=seconds)


def _row(name: str, direct: Load, gateway: Load) -> str:
    times = "".join(f"{statistics.median(load.times_s) * 1e3:12.2f}" for load in (direct, gateway))
    rates = "".join(f"{load.per_second:12.0f}" for load in (direct, gateway))
    return f"{name:8}{times}{rates}{gateway.per_second / direct.per_second:8.2f}"


async def _bench(pairs: int, seconds: float) -> str:
    lines = [f"{'':8}{'direct ms':>12}{'gateway ms':>12}{'direct/s':>12}{'gateway/s':>12}{'ratio':>8}"]
    with tempfile.TemporaryDirectory() as folder:
        async with servers(Path(folder)) as targets:
            for name, stream in SHAPES.items():
                await _pair(targets, stream=stream, seconds=seconds / 4)  # warm
                runs = [await _pair(targets, stream=stream, seconds=seconds) for _ in range(pairs)]
                runs.sort(key=lambda run: run[1].per_second / run[0].per_second)
                lines.append(_row(name, *runs[len(runs) // 2]))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each half of a pair")
    options = parser.parse_args()
    sys.stdout.write(asyncio.run(_bench(options.pairs, options.seconds)) + "\n")


if __name__ == "__main__":
    main()
