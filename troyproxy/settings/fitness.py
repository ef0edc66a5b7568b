"""The fitness table, read from the catalogue's data file."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator, Mapping
from typing import Final

import yaml

from troyproxy.auto.fitness import FitnessTable, Row, Task, table

_FILE: Final = "fitness.yaml"


def load_fitness() -> FitnessTable:
    """Return the table of this version. The file is ours: a test reads it, nothing checks it at run time."""
    text = importlib.resources.files("troyproxy.catalog").joinpath("data", _FILE).read_text(encoding="utf-8")
    document = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 -- both are safe loaders
    return table((row for entry in document["models"] for row in _rows(entry)), document["families"])


def _rows(entry: Mapping[str, object]) -> Iterator[Row]:
    patterns = entry["match"]
    cells = {Task(name): float(str(value)) for name, value in entry.items() if name not in {"match", "family"}}
    for pattern in patterns if isinstance(patterns, list) else ():
        yield Row(pattern, cells, str(entry["family"]))
