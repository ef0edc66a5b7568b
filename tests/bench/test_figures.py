"""The benchmark's arithmetic, and one short run of the whole thing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.client import Load
from tests.bench.figures import row_of, table

ROOT = Path(__file__).parents[2]


def _load(count: int, each_s: float, cpu_s: float | None = None) -> Load:
    return Load(1.0, [each_s] * count, cpu_s)


def test_the_ratio_is_the_median_of_the_pairs() -> None:
    pairs = [(_load(100, 0.01), _load(count, 0.02)) for count in (10, 50, 90)]
    assert row_of("json", 1, pairs).ratio == pytest.approx(0.5)


def test_the_added_time_is_taken_pair_by_pair() -> None:
    pairs = [(_load(9, direct), _load(9, direct + 0.002)) for direct in (0.001, 0.5, 0.003)]
    assert row_of("json", 1, pairs).added_ms == pytest.approx(2.0)


def test_processor_time_is_per_request() -> None:
    row = row_of("json", 1, [(_load(100, 0.01, cpu_s=0.01), _load(50, 0.02, cpu_s=0.05))])
    assert [row.direct.cpu_us, row.gateway.cpu_us] == pytest.approx([100, 1000])


def test_processor_time_that_is_not_known_is_a_dash() -> None:
    line = table([row_of("json", 1, [(_load(2, 0.01), _load(1, 0.02))])]).split("\n")[1]
    assert line.count(" - ") == 2


def test_a_short_run_measures_every_case() -> None:
    command = [sys.executable, "-m", "tests.bench", "--pairs", "1", "--seconds", "0.1", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, cwd=ROOT, timeout=60)
    rows = json.loads(done.stdout)["rows"]
    assert [(row["shape"], row["clients"], row["gateway"]["per_second"] > 0) for row in rows] == [
        *(("json", 1, True), ("json", 32, True)),
        *(("stream", 1, True), ("stream", 32, True)),
    ]
