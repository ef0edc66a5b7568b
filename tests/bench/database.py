"""What a database full of usage rows costs: the writer, the admin pages and pruning, on a SQLite file.

    python -m tests.bench.database [--rows N] [--json]

Fills a file in a temporary folder with N requests (a million without the option) of 100 days, and times what the
gateway does with it, without HTTP: the fastest of a few runs each. The writer is measured on an empty file too; the
ratio says what the million costs it. With the defaults it takes about a minute and 1 GB of disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Final

from msgspec import structs

from tests.bench.rows import DAY_S, NOW, fill, request, request_id
from tests.fakes import FakeClock
from troyproxy.accounting.pages import Position, Wanted
from troyproxy.accounting.statistics import report
from troyproxy.store import migrations
from troyproxy.store.batches import inserting
from troyproxy.store.daily import Grouping
from troyproxy.store.database import Database, parse_url
from troyproxy.store.pruning import Keep, Pruner, PruningPace
from troyproxy.store.requests import SqlRequests
from troyproxy.store.statistics import SqlStatistics
from troyproxy.store.tables import USAGE_ROWS

BATCH: Final = 100
"""Rows of one transaction of the writer, as under some load."""


@dataclass(frozen=True, slots=True)
class Timed:
    """What was done, and the fastest of its runs in milliseconds: other work on the machine only adds."""

    what: str
    ms: float


async def fastest_ms(work: Callable[[], Awaitable[object]], runs: int) -> float:
    """Return the time of the fastest of *runs* runs, after one that warms."""
    times: list[float] = []
    for _ in range(runs + 1):
        began = time.perf_counter()
        await work()
        times.append((time.perf_counter() - began) * 1e3)
    return min(times[1:])


async def writer_ms(database: Database, first: int, runs: int) -> float:
    """Return what one batch of the writer takes; its requests are numbered from *first*."""
    grouping, numbers = Grouping(), iter(range(first, 10**9))

    async def write() -> None:
        rows = [structs.replace(request(number), at=NOW + (number - first) / 100) for number in islice(numbers, BATCH)]
        await database.insert(inserting({USAGE_ROWS: rows}, grouping))

    return await fastest_ms(write, runs)


async def bench(rows: int, folder: Path) -> list[Timed]:
    """Return what everything takes with that many rows."""
    empty, full = (Database(parse_url(f"sqlite:///{folder}/{name}.db")) for name in ("empty", "full"))
    for database in (empty, full):
        await migrations.upgrade(str(database.url))
    began = time.perf_counter()
    await asyncio.to_thread(fill, folder / "full.db", rows)
    found = [Timed(f"fill {rows:,} rows", (time.perf_counter() - began) * 1e3)]
    found += [Timed(f"writer: {BATCH} rows, empty file", await writer_ms(empty, rows, 20))]
    found += [Timed(f"writer: {BATCH} rows, full file", await writer_ms(full, rows, 20))]
    for what, work in pages(full, rows).items():
        found.append(Timed(what, await fastest_ms(work, 5)))
    found += await pruning(full)
    for database in (empty, full):
        await database.close()
    return found


def pages(database: Database, rows: int) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return what the admin pages ask for."""
    requests, statistics = SqlRequests(database), SqlStatistics(database)

    async def window(hours: int) -> None:
        report(await statistics.window(NOW - hours * 3600))

    return {
        "/api/stats, 24 hours": lambda: window(24),
        "/api/stats, 720 hours": lambda: window(720),
        "/api/stats/daily, 30 days": lambda: statistics.daily("2026-12-16", "2027-01-15"),
        "/api/stats/daily, 30 days by model": lambda: statistics.daily_by("model", "2026-12-16", "2027-01-15"),
        "/api/requests, first page of 50": lambda: requests.page(Wanted()),
        "/api/requests, a page 50 days deep": lambda: requests.page(Wanted(), before=Position(NOW - 50 * DAY_S, "")),
        "/api/requests, a filter that finds nothing": lambda: requests.page(Wanted(status=418)),
        "/api/requests/{id}": lambda: requests.find(request_id(rows // 2)),
    }


async def pruning(database: Database) -> list[Timed]:
    """Return what a portion of pruning takes and what a whole run of it; ten days of a hundred are too old."""
    clock = FakeClock()
    clock.move(NOW - clock.now())
    pruner = Pruner(database, Keep(), clock=clock, pace=PruningPace())
    clock.move(60)
    portions: list[float] = []
    await pruner.step()
    while pruner.busy:
        began = time.perf_counter()
        await pruner.step()
        portions.append((time.perf_counter() - began) * 1e3)
    return [Timed("prune: a portion", median(portions)), Timed("prune: a run", sum(portions))]


def table(found: list[Timed]) -> str:
    """Return it for a terminal."""
    times = {each.what: each.ms for each in found}
    ratio = times[f"writer: {BATCH} rows, full file"] / times[f"writer: {BATCH} rows, empty file"]
    lines = [f"{each.what:<46}{each.ms:>10,.1f} ms" for each in found]
    return "\n".join([*lines, f"{'writer: full / empty':<46}{ratio:>10.2f}"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.database", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(bench(options.rows, Path(folder)))
    text = json.dumps([asdict(each) for each in found], indent=2) if options.json else table(found)
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
