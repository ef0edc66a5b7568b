"""From runs to figures: the medians of the pairs, and ratios that are worth comparing over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from tests.bench.loads import Load
from tests.bench.streams import Streamed

Round = Mapping[str, Load]
"""The same requests to each of the servers, one after the other."""
StreamRound = Mapping[str, Streamed]
OURS = "gateway"
ROUTE = "route"
FLOOR = "floor"
DIRECT = "direct"


def known(values: Iterable[float | None]) -> float | None:
    """Return the median of those that are known; None when none is."""
    found = [value for value in values if value is not None]
    return median(found) if found else None


def ratio(ours: float | None, other: float | None) -> float | None:
    """Return *ours* over *other*; None when one is not known."""
    return ours / other if ours is not None and other else None


@dataclass(frozen=True, slots=True)
class JsonRow:
    """One case of completions; medians. Processor time of a whole server in microseconds for a request."""

    case: str
    clients: int
    gateway_us: float | None
    route_us: float | None
    floor_us: float | None
    ratio: float | None
    """Of the processor time, gateway over route."""
    gateway_per_s: float
    route_per_s: float | None
    gateway_p50_ms: float
    gateway_p99_ms: float
    route_p50_ms: float | None
    route_p99_ms: float | None
    added_p50_ms: float | None
    """What the gateway adds to the median answer of the upstream called directly; None where that was not called."""
    added_p99_ms: float | None
    route_added_p50_ms: float | None
    route_added_p99_ms: float | None


@dataclass(frozen=True, slots=True)
class StreamRow:
    """Live streams at one concurrency; medians. Processor time of a whole server in microseconds for an event."""

    case: str
    clients: int
    period_ms: int
    gateway_us: float | None
    route_us: float | None
    floor_us: float | None
    ratio: float | None
    gateway_p50_ms: float
    """How late an event comes at the client: half of them come earlier."""
    gateway_p99_ms: float
    route_p50_ms: float | None
    route_p99_ms: float | None
    broken: int
    """Streams through the gateway that did not arrive whole."""


def json_row(case: str, clients: int, rounds: Sequence[Round]) -> JsonRow:
    """Return the row of *rounds*; one without a server has None for it."""

    def of(server: str, what: Callable[[Load], float | None]) -> float | None:
        return known(what(each[server]) for each in rounds if server in each)

    def added(server: str, what: Callable[[Load], float]) -> float | None:
        both = [each for each in rounds if server in each and DIRECT in each]
        return known(what(each[server]) - what(each[DIRECT]) for each in both)

    return JsonRow(
        case=case,
        clients=clients,
        gateway_us=of(OURS, _cpu),
        route_us=of(ROUTE, _cpu),
        floor_us=of(FLOOR, _cpu),
        ratio=known(ratio(_cpu(each[OURS]), _cpu(each[ROUTE])) for each in rounds if ROUTE in each),
        gateway_per_s=of(OURS, _rate) or 0.0,
        route_per_s=of(ROUTE, _rate),
        gateway_p50_ms=of(OURS, _p50) or 0.0,
        gateway_p99_ms=of(OURS, _p99) or 0.0,
        route_p50_ms=of(ROUTE, _p50),
        route_p99_ms=of(ROUTE, _p99),
        added_p50_ms=added(OURS, _p50),
        added_p99_ms=added(OURS, _p99),
        route_added_p50_ms=added(ROUTE, _p50),
        route_added_p99_ms=added(ROUTE, _p99),
    )


def stream_row(case: str, clients: int, period_ms: int, rounds: Sequence[StreamRound]) -> StreamRow:
    """Return the row of *rounds*."""

    def of(server: str, what: Callable[[Streamed], float | None]) -> float | None:
        return known(what(each[server]) for each in rounds if server in each)

    return StreamRow(
        case=case,
        clients=clients,
        period_ms=period_ms,
        gateway_us=of(OURS, _cpu),
        route_us=of(ROUTE, _cpu),
        floor_us=of(FLOOR, _cpu),
        ratio=known(ratio(_cpu(each[OURS]), _cpu(each[ROUTE])) for each in rounds if ROUTE in each),
        gateway_p50_ms=of(OURS, _p50) or 0.0,
        gateway_p99_ms=of(OURS, _p99) or 0.0,
        route_p50_ms=of(ROUTE, _p50),
        route_p99_ms=of(ROUTE, _p99),
        broken=sum(len(each[OURS].broken) for each in rounds),
    )


def _cpu(run: Load | Streamed) -> float | None:
    return run.cpu_us


def _rate(run: Load) -> float:
    return run.per_second


def _p50(run: Load | Streamed) -> float:
    return run.p50_ms


def _p99(run: Load | Streamed) -> float:
    return run.p99_ms


@dataclass(frozen=True, slots=True)
class Scale:
    """A thousand live streams on one server that has just started."""

    server: str
    streams: int
    whole: int
    broken: int
    cpu_us: float | None
    p50_ms: float
    p99_ms: float
    gap_spread: float
    """Of the gaps between the events of a stream, the 99th percentile over the median."""
    kb_each: float | None
    """Memory that the server took for each stream while all were live, in KB (1,000 bytes)."""

    @property
    def fairness(self) -> float:
        """The 99th percentile of the events' delay over the median."""
        return self.p99_ms / self.p50_ms if self.p50_ms else 0.0


@dataclass(frozen=True, slots=True)
class Started:
    """A start of the gateway, in seconds from exec; medians. *memory_mb*: half a second after it was ready."""

    what: str
    accepting_s: float
    ready_s: float
    memory_mb: float | None


@dataclass(frozen=True, slots=True)
class Layer:
    """A part of the gateway by itself, in this process, without a network."""

    what: str
    us: float
    calls: float | None = None
    """Calls of functions, of Python and of C; None where they were not counted."""


@dataclass(slots=True)
class Figures:
    """All of it. Parts that were not asked for stay empty."""

    machine: Mapping[str, object]
    json: Sequence[JsonRow] = ()
    streams: Sequence[StreamRow] = ()
    scale: Sequence[Scale] = ()
    starts: Sequence[Started] = ()
    layers: Sequence[Layer] = ()
    planning: Mapping[str, object] | None = None
    leaks: Sequence[Mapping[str, object]] = ()
    database: Sequence[Mapping[str, object]] = ()

    def as_json(self) -> dict[str, object]:
        """Return it for `json.dumps`."""
        return {**asdict(self), "scale": [{**asdict(row), "fairness": row.fairness} for row in self.scale]}
