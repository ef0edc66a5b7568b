"""The fitness table, read from the catalogue's data file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from troyproxy.auto.fitness import FitnessTable, Row, Task, table
from troyproxy.settings.own_data import decoded

_FILE: Final = "fitness.yaml"


def load_fitness() -> FitnessTable:
    """Return the table of this version. The file is ours: a test reads it, nothing checks it at run time."""
    document = decoded(_FILE)
    return table((row for entry in document["models"] for row in _rows(entry)), document["families"])


def _rows(entry: Mapping[str, object]) -> Iterator[Row]:
    patterns = entry["match"]
    cells = {Task(name): float(str(value)) for name, value in entry.items() if name not in {"match", "family"}}
    for pattern in patterns if isinstance(patterns, list) else ():
        yield Row(pattern, cells, str(entry["family"]))
