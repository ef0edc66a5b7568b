"""One short run of the database benchmark: everything it times is there and was done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.bench.database import Timed, table

ROOT = Path(__file__).parents[2]


def test_a_short_run_times_everything() -> None:
    command = [sys.executable, "-m", "tests.bench.database", "--rows", "3000", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, cwd=ROOT, timeout=120)
    found = {each["what"]: each["ms"] for each in json.loads(done.stdout)}
    assert len(found) == 13
    assert min(found.values()) > 0


def test_the_table_has_the_ratio_of_the_writer() -> None:
    found = [Timed("writer: 100 rows, empty file", 2.0), Timed("writer: 100 rows, full file", 3.0)]
    assert table(found).split("\n")[-1].split()[-1] == "1.50"
