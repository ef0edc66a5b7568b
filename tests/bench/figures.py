"""From loads to figures: the medians of the pairs, and the ratios that are worth comparing over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles

from tests.bench.client import Load

Pair = tuple[Load, Load]
"""The same requests straight to the upstream, and through the gateway."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a row, each number the median of its runs. Times in milliseconds, processor time in microseconds."""

    per_second: float
    p50_ms: float
    p95_ms: float
    cpu_us: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """One case. *ratio* is the gateway's throughput over the direct one; *added_ms* what it adds to the median."""

    shape: str
    clients: int
    direct: Side
    gateway: Side
    ratio: float
    added_ms: float

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def row_of(shape: str, clients: int, pairs: Sequence[Pair]) -> Row:
    """Return the row of *pairs*; ratios are taken pair by pair, since what disturbs one half disturbs the other."""
    return Row(
        shape=shape,
        clients=clients,
        direct=_side([direct for direct, _ in pairs]),
        gateway=_side([gateway for _, gateway in pairs]),
        ratio=median(gateway.per_second / direct.per_second for direct, gateway in pairs),
        added_ms=median((median(gateway.times_s) - median(direct.times_s)) * 1e3 for direct, gateway in pairs),
    )


def _side(loads: Sequence[Load]) -> Side:
    cpu = [load.cpu_each_s for load in loads if load.cpu_each_s is not None]
    return Side(
        per_second=median(load.per_second for load in loads),
        p50_ms=median(median(load.times_s) for load in loads) * 1e3,
        p95_ms=median(_p95(load.times_s) for load in loads) * 1e3,
        cpu_us=median(cpu) * 1e6 if cpu else None,
    )


def _p95(times_s: Sequence[float]) -> float:
    return quantiles(times_s, n=20)[-1] if len(times_s) > 1 else times_s[0]


HEAD = (
    f"{'':6}{'clients':>8} |{'direct/s':>9}{'p50 ms':>8}{'p95 ms':>8}{'cpu µs':>8} |"
    f"{'gateway/s':>10}{'p50 ms':>8}{'p95 ms':>8}{'cpu µs':>8} |{'ratio':>7}{'added ms':>10}"
)


def table(rows: Sequence[Row]) -> str:
    """Return the rows for a terminal."""
    return "\n".join([HEAD, *map(_line, rows)])


def _line(row: Row) -> str:
    direct, gateway = row.direct, row.gateway
    return (
        f"{row.shape:6}{row.clients:>8} |{direct.per_second:>9.0f}{_times(direct)} |"
        f"{gateway.per_second:>10.0f}{_times(gateway)} |{row.ratio:>7.3f}{row.added_ms:>10.2f}"
    )


def _times(side: Side) -> str:
    cpu = "-" if side.cpu_us is None else f"{side.cpu_us:.0f}"
    return f"{side.p50_ms:>8.2f}{side.p95_ms:>8.2f}{cpu:>8}"
