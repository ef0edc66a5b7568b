"""What planning with the auto engine costs: processor time, in this process, for pools of several sizes.

    python -m tests.bench.planning [--rounds N] [--json]

A plan is everything between the decoded request and the first attempt: the tree, the filters, the task, the scores,
the order. The same small request as in `tests.bench` is planned, for a pool whose members were all measured. *anew* is
a plan that finds nothing measured in the last second. Rounds alternate with real requests to a gateway process, which
plan nothing to speak of: `share` is a plan for 50 candidates over one such request. About 20 seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

from tests.bench.loads import measure
from tests.bench.servers import servers
from tests.bench.shapes import request
from tests.fakes import FakeClock
from tests.proxy.auto_desk import AutoDesk
from tests.proxy.rig import provider
from troyproxy.accounting.finished import Finished
from troyproxy.catalog.models import Model, Price
from troyproxy.catalog.providers import Provider
from troyproxy.catalog.snapshot import build
from troyproxy.proxy.call import Call

SIZES: Final = (1, 10, 50, 200, 1000)
PER_PROVIDER: Final = 10
SAMPLES: Final = 20
PLANS: Final = 10_000
"""Candidates that are planned for in one run, at least."""
MOST_SHARE: Final = 0.5
"""What a plan for 50 candidates may cost, of a request's own processor time."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One size; medians, in microseconds of processor time."""

    candidates: int
    plan_us: float
    anew_us: float


@dataclass(frozen=True, slots=True)
class Report:
    """What was found. *request_us*: one whole request through a gateway process."""

    rows: tuple[Planned, ...]
    request_us: float

    @property
    def share(self) -> float:
        """A plan for 50 candidates over a request."""
        return self._of(50) / self.request_us

    @property
    def growth(self) -> float:
        """How many times as much as for 50 a plan for 1,000 candidates costs, which are 20 times as many."""
        return self._of(1000) / self._of(50)

    def as_json(self) -> dict[str, object]:
        """Return it for `json.dumps`."""
        return {**asdict(self), "share": self.share, "growth": self.growth}

    def _of(self, candidates: int) -> float:
        return next(row.plan_us for row in self.rows if row.candidates == candidates)


def desk_of(candidates: int) -> AutoDesk:
    """Return a planner with a pool of so many candidates, all of them measured."""
    desk, rng = AutoDesk(FakeClock()), Random(7)
    desk.snapshot = build(_providers(candidates, rng), auto_models="all")
    for each in desk.snapshot.providers.values():
        for model in each.models:
            for at in range(SAMPLES):
                began = desk.clock.now() - at
                desk.measuring.statistics.note(Finished(each.id, model, "A", began, True, rng.uniform(100, 900)))
    return desk


def _providers(candidates: int, rng: Random) -> list[Provider]:
    found = []
    for at in range(0, candidates, PER_PROVIDER):
        count = min(PER_PROVIDER, candidates - at)
        models = [Model(f"m{n}", price=Price(rng.uniform(0, 9), rng.uniform(0, 9))) for n in range(count)]
        found.append(provider(f"p{at}", *models))
    return found


def plans(desk: AutoDesk, count: int, *, apart_s: float = 0.0) -> float:
    """Return the microseconds of one plan, of *count* that lie *apart_s* apart."""
    calls = [desk.call() for _ in range(count)]

    def plan(call: Call) -> None:
        desk.clock.move(apart_s)
        desk.planner.plan(call)

    return _each_us(plan, calls)


def _each_us(work: Callable[[Call], None], calls: list[Call]) -> float:
    began = time.process_time()
    for call in calls:
        work(call)
    return (time.process_time() - began) / len(calls) * 1e6


async def bench(rounds: int, sizes: tuple[int, ...] = SIZES, seconds: float = 0.8) -> Report:
    """Return the medians of *rounds*."""
    desks = {size: desk_of(size) for size in sizes}
    found: dict[int, list[tuple[float, float]]] = {size: [] for size in sizes}
    requests: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        async with servers(Path(folder)) as (_, gateway):
            await measure(gateway, request("bench/fast"), clients=1, seconds=seconds / 2)  # warm
            for _ in range(rounds):
                load = await measure(gateway, request("bench/fast"), clients=1, seconds=seconds)
                requests.append(load.cpu_us or 0.0)
                for size, desk in desks.items():
                    plans(desk, 1)
                    count = max(3, PLANS // size)
                    found[size].append((plans(desk, min(count, 500)), plans(desk, max(3, count // 20), apart_s=1.0)))
    rows = (Planned(size, *(median(each) for each in zip(*found[size], strict=True))) for size in sizes)
    return Report(tuple(rows), median(requests))


def table(report: Report) -> str:
    """Return it for a terminal."""
    lines = [f"{'planning':<12}{'candidates':>12}{'plan µs':>12}{'anew µs':>12}"]
    lines += [f"{'':<12}{row.candidates:>12,}{row.plan_us:>12,.0f}{row.anew_us:>12,.0f}" for row in report.rows]
    lines.append(f"a request: {report.request_us:,.0f} µs; a plan for 50 is {report.share:.3f} of it (≤ {MOST_SHARE})")
    lines.append(f"1,000 candidates cost {report.growth:.1f} times as much as 50")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.planning", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    options = parser.parse_args()
    report = asyncio.run(bench(options.rounds))
    sys.stdout.write((json.dumps(report.as_json(), indent=2) if options.json else table(report)) + "\n")


if __name__ == "__main__":
    main()
