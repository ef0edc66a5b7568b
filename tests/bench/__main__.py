"""What the gateway costs: the same requests through it and straight to the upstream, all on this machine.

    python -m tests.bench [--pairs N] [--seconds S] [--json]

Two processes of their own, an upstream that answers at once and `troyproxy serve` in front of it, are called by one raw
HTTP/1.1 client with keep-alive. Pairs alternate, so that a busy machine hurts both sides; medians count. The ratio is
the number to watch: absolute times belong to the machine. With the defaults it takes about 40 seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

from tests.bench.client import measure
from tests.bench.figures import Pair, Row, row_of, table
from tests.bench.servers import Target, servers

CASES = (("json", 1), ("json", 32), ("stream", 1), ("stream", 32))
LONGEST_S = 60.0
"""Nobody waits longer for a benchmark; it ends with an error then."""


async def _pair(targets: tuple[Target, Target], shape: str, clients: int, seconds: float) -> Pair:
    stream = shape == "stream"
    direct = await measure(targets[0], stream=stream, clients=clients, seconds=seconds)
    return direct, await measure(targets[1], stream=stream, clients=clients, seconds=seconds)


async def bench(pairs: int, seconds: float) -> list[Row]:
    """Return a row per case. Raises TimeoutError after a minute."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        async with asyncio.timeout(LONGEST_S), servers(Path(folder)) as targets:
            for shape, clients in CASES:
                await _pair(targets, shape, clients, seconds / 4)  # warm
                runs = [await _pair(targets, shape, clients, seconds) for _ in range(pairs)]
                rows.append(row_of(shape, clients, runs))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.8, help="of each half of a pair")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    options = parser.parse_args()
    rows = asyncio.run(bench(options.pairs, options.seconds))
    if options.json:
        machine = {"python": platform.python_version(), "cores": os.cpu_count()}
        sys.stdout.write(json.dumps({"machine": machine, "rows": [row.as_json() for row in rows]}, indent=2) + "\n")
    else:
        sys.stdout.write(table(rows) + "\n")


if __name__ == "__main__":
    main()
