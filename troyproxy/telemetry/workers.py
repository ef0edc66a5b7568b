"""Several workers that count into one folder, so that every scrape agrees, whoever answers it.

The library keeps each worker's numbers in files that all of them read. A worker goes by its name there, not by its
process id: the one that takes a dead one's place counts on where that one was killed, so nothing falls, nothing is
lost, and the number of files does not grow with the restarts. What is only asked for at a scrape (circuits, queues)
must be written down instead: `Live` does it just before a scrape, and every second for the scrapes of others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, values
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from troyproxy.telemetry.declared import DECLARED, PREFIX, Kind, counter, gauge
from troyproxy.telemetry.labels import Labels
from troyproxy.telemetry.render import render
from troyproxy.telemetry.status import StatusFacts, samples_of

FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
REFRESH_S: Final = 1.0
"""How old what one worker says of another's circuits and queues may be."""

Samples = dict[tuple[str, ...], float]


def join(folder: Path, worker: str) -> None:
    """Count into *folder* as *worker* from now on. To be called once in a process, before any metric is made."""
    os.environ[FOLDER] = str(folder)
    values.ValueClass = values.MultiProcessValue(lambda: worker)  # type: ignore[no-untyped-call]  # untyped library


def mark_dead(folder: Path, worker: str) -> None:
    """Forget the gauges of a *worker* that has ended; its counters stay."""
    mark_process_dead(worker, str(folder))  # type: ignore[no-untyped-call]  # untyped library


def render_all(folder: Path, accept: str) -> tuple[bytes, str]:
    """Return what all workers have counted in *folder*, and its content type."""
    registry = CollectorRegistry()
    registry.register(_Everything(folder))
    return render(registry, accept)


class _Everything:
    """What is counted in a folder, in the order of the documentation; the files have none."""

    def __init__(self, folder: Path) -> None:
        self._all = MultiProcessCollector(None, path=str(folder))  # type: ignore[no-untyped-call]  # untyped library

    def collect(self) -> Iterable[Metric]:
        place = {name.removesuffix("_total"): index for index, name in enumerate(DECLARED)}
        return sorted(self._all.collect(), key=lambda metric: place.get(metric.name, len(place)))  # type: ignore[no-untyped-call]  # untyped library


class Live:
    """The live state as values that are written down. What is gone from it is 0: a written sample cannot be removed."""

    def __init__(self, labels: Labels) -> None:
        self._labels, self._registry = labels, CollectorRegistry()
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._shown: dict[str, Samples] = {}

    def write(self, facts: StatusFacts) -> None:
        """Write *facts* down."""
        for name, found in samples_of(facts, self._labels).items():
            before = self._shown.get(name, {})
            now = self._shown[name] = dict.fromkeys(before, 0.0) | found
            for labels, value in now.items():
                if DECLARED[PREFIX + name].kind is Kind.COUNTER:
                    self._counter(name).labels(*labels).inc(max(0.0, value - before.get(labels, 0.0)))
                else:
                    self._gauge(name, labels).set(value)

    # Made with the first sample: before it, the lowest value among the workers would be an invented 0.

    def _counter(self, name: str) -> Counter:
        if name not in self._counters:
            self._counters[name] = counter(name, self._registry)
        return self._counters[name]

    def _gauge(self, name: str, labels: tuple[str, ...]) -> Gauge:
        if name not in self._gauges:
            self._gauges[name] = gauge(name, self._registry)
        return self._gauges[name].labels(*labels) if labels else self._gauges[name]
