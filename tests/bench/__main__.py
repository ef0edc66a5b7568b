"""What the gateway costs: everything in one run, beside a plain route and a floor, all on this machine.

    python -m tests.bench [--quick] [--only PART,PART] [--json] [--strict] [--write docs]

Servers are processes of their own in front of an upstream that costs next to nothing. The same requests go to the
gateway and to the others by turns, at least five times, so that a busy machine hurts all of them; medians count, and
processor time is that of whole processes. Ratios are the numbers to watch: absolute times belong to the machine. It
takes about six minutes; --quick takes one, and says only that everything runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import uvloop

from tests.bench import database, leaks, planning
from tests.bench.completions import completions, with_workers
from tests.bench.figures import DIRECT, FLOOR, OURS, ROUTE, Figures
from tests.bench.layers import layers
from tests.bench.live import live, scale
from tests.bench.loads import MISSING, wrk
from tests.bench.pace import FULL, QUICK, Pace
from tests.bench.servers import Target, app, gateway, upstream
from tests.bench.start import starts
from tests.bench.tables import tables
from tests.bench.targets import goals, missed
from tests.bench.writing import write
from troyproxy.version import VERSION

PARTS: Final = ("json", "streams", "scale", "starts", "layers", "planning", "leaks", "database")


def machine() -> dict[str, object]:
    """Return what the figures depend on."""
    found = {"troyproxy": VERSION, "Python": platform.python_version(), "cores": os.cpu_count()}
    return {**found, "load from": "wrk" if wrk() else "our own client", "load before": f"{os.getloadavg()[0]:.1f}"}


def allow_many_files() -> None:
    """Let this process and those that it starts open as many files as they may: a stream takes two of the gateway."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def bench(pace: Pace, parts: Sequence[str], folder: Path) -> Figures:
    """Return the figures of *parts*. Raises RuntimeError when a server or a request failed."""
    figures = Figures(machine())
    async with upstream(folder) as above:
        if {"json", "streams"} & set(parts):
            await _side_by_side(figures, pace, parts, folder, above)
        if "scale" in parts:
            figures.scale = await scale(folder, above, pace)
        if "starts" in parts:
            figures.starts = await starts(folder, above, pace)
    await _in_this_process(figures, pace, parts, folder)
    return figures


async def _side_by_side(figures: Figures, pace: Pace, parts: Sequence[str], folder: Path, above: Target) -> None:
    async with (
        gateway(folder / "gateway", above) as ours,
        app(ROUTE, folder, above) as route,
        app(FLOOR, folder, above) as floor,
    ):
        fleet = {DIRECT: above, OURS: ours, ROUTE: route, FLOOR: floor}
        if "json" in parts:
            figures.json = await completions(fleet, pace)
        if "streams" in parts:
            figures.streams = await live(fleet, pace)
    if "json" in parts:
        figures.json = [*figures.json, *await with_workers(folder, above, pace)]


async def _in_this_process(figures: Figures, pace: Pace, parts: Sequence[str], folder: Path) -> None:
    if "layers" in parts:
        figures.layers = await layers(pace.rounds)
    if "planning" in parts:
        figures.planning = (await planning.bench(pace.rounds)).as_json()
    if "leaks" in parts:
        figures.leaks = [row.as_json() for row in leaks.bench(pace.rounds)]
    if "database" in parts:
        figures.database = [asdict(timed) for timed in await database.bench(pace.rows, folder)]


def _parts(text: str) -> tuple[str, ...]:
    found = tuple(text.split(","))
    if unknown := set(found) - set(PARTS):
        raise argparse.ArgumentTypeError(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return found


def options() -> argparse.Namespace:
    """Return what the command line says."""
    about, _, more = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description=about, epilog=more, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a minute at most: says only that everything runs")
    parser.add_argument("--only", type=_parts, default=PARTS, metavar="PARTS", help=f"some of {','.join(PARTS)}")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target was missed")
    parser.add_argument("--write", type=Path, metavar="DOCS", help="put figures and plot into this folder")
    return parser.parse_args()


def main() -> int:
    """Measure, print, and write where that was asked for."""
    asked = options()
    if not wrk():
        sys.stderr.write(MISSING + "\n")
    allow_many_files()
    with tempfile.TemporaryDirectory() as folder:
        figures = uvloop.run(bench(QUICK if asked.quick else FULL, asked.only, Path(folder)))
    found = goals(figures)
    if asked.json:
        told = {**figures.as_json(), "targets": [goal.as_json() for goal in found]}
        sys.stdout.write(json.dumps(told, indent=2) + "\n")
    else:
        sys.stdout.write("\n\n".join(table.text() for table in tables(figures)) + "\n")
    if asked.write is not None:
        write(figures, asked.write)
    return 1 if asked.strict and missed(found) else 0


if __name__ == "__main__":
    sys.exit(main())
