"""The numbers of one of several workers: each is written down as it grows, so killing the worker loses no count.

Where and how they are kept is the metrics library's: a file of each worker, which all of them read (``workers.py``).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Any

from prometheus_client import values

from troyproxy.telemetry.counting import Labelled, Mark, Number, Spread, bound_label
from troyproxy.telemetry.declared import DECLARED, PREFIX, Kind


class WrittenNumber(Number):
    """A counter or a gauge that goes on from what the file has of it."""

    __slots__ = ("_kept",)

    def __init__(self, name: str, labels: Labelled) -> None:
        declared, full = DECLARED[PREFIX + name], PREFIX + name
        family = full.removesuffix("_total") if declared.kind is Kind.COUNTER else full
        what = (declared.kind.value, family, full, declared.labels, labels, declared.help)
        more = {"multiprocess_mode": declared.several} if declared.kind is Kind.GAUGE else {}
        self._kept = values.ValueClass(*what, **more)

    def inc(self, amount: float = 1.0) -> None:
        """Add *amount*."""
        self._kept.inc(amount)

    def set(self, value: float) -> None:
        """Be *value* from now on."""
        self._kept.set(value)


class WrittenSpread(Spread):
    """A histogram that goes on from what the file has of it. It has no examples: the library's files have none."""

    __slots__ = ("_kept", "_sum")

    def __init__(self, name: str, labels: Labelled) -> None:
        declared, full = DECLARED[PREFIX + name], PREFIX + name
        super().__init__(declared.buckets)

        def kept(suffix: str, **more: str) -> Any:  # noqa: ANN401 -- the library has no types for it
            names, shown = (*declared.labels, *more), (*labels, *more.values())
            return values.ValueClass(declared.kind.value, full, full + suffix, names, shown, declared.help)

        self._sum = kept("_sum")
        self._kept = [kept("_bucket", le=bound_label(bound)) for bound in (*declared.buckets, math.inf)]

    def observe(self, amount: float, mark: Mark | None = None) -> None:
        """Count *amount*."""
        del mark
        self._sum.inc(amount)
        self._kept[bisect_left(self.bounds, amount)].inc(1)

    def observe_all(self, amounts: Sequence[float], marks: Sequence[Mark] = ()) -> None:
        """Count every one of *amounts*, with one write for each bucket."""
        del marks
        for place, count in Counter(bisect_left(self.bounds, amount) for amount in amounts).items():
            self._kept[place].inc(count)
        self._sum.inc(math.fsum(amounts))
