"""The figures as tables: a `Table` is cells; it can be shown on a terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.bench.figures import Figures, JsonRow, Scale, StreamRow
from tests.bench.targets import Goal, goals

UNKNOWN: Final = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """*rows* are as long as *head*; the first column is text, the others are numbers."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """Return it for a terminal."""
        lines = [self.head, *self.rows]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.head))]
        return "\n".join([self.title, *("  " + _padded(line, widths) for line in lines)])

    def markdown(self) -> str:
        """Return it for a document."""
        rule = ["---", *["--:"] * (len(self.head) - 1)]
        return "\n".join(f"| {' | '.join(line)} |" for line in (self.head, rule, *self.rows))


def _padded(line: Sequence[str], widths: Sequence[int]) -> str:
    first = line[0].ljust(widths[0])
    return "  ".join([first, *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))])


def number(value: object, places: int = 0) -> str:
    """Return a number as people read it, a dash for None."""
    return f"{value:,.{places}f}" if isinstance(value, int | float) else UNKNOWN


def tables(figures: Figures) -> Iterator[Table]:
    """Yield a table for each part that was measured."""
    aims = goals(figures)
    if any(goal.measured is not None for goal in aims):
        yield _goals(aims)
    parts = (
        (figures.json, _json),
        (figures.json, _latency),
        (figures.streams, _streams),
        (figures.scale, _scale),
        (figures.starts, _starts),
        (figures.layers, _layers),
        (figures.planning, _planning),
        (figures.leaks, _leaks),
        (figures.database, _database),
    )
    yield from (found for found in (table(figures) for part, table in parts if part) if found.rows)


def _goals(found: Sequence[Goal]) -> Table:
    words = {True: "met", False: "missed", None: UNKNOWN}
    rows = [
        [goal.what, _with(goal.most, goal.unit), _with(goal.measured, goal.unit), words[goal.met]] for goal in found
    ]
    return Table("Targets", ("what", "at most", "measured", ""), rows)


def _with(value: float | None, unit: str) -> str:
    if value is None:
        return UNKNOWN
    return f"{number(value, 0 if value == int(value) else 2)} {unit}".rstrip()


def _json(figures: Figures) -> Table:
    head = ("case", "clients", "gateway, µs", "route, µs", "floor, µs", "ratio", "gateway/s", "route/s")
    return Table("Completions: processor time of a request", head, [_json_line(row) for row in figures.json])


def _json_line(row: JsonRow) -> list[str]:
    costs = [number(cost) for cost in (row.gateway_us, row.route_us, row.floor_us)]
    rates = [number(rate) for rate in (row.gateway_per_s, row.route_per_s)]
    return [row.case, str(row.clients), *costs, number(row.ratio, 2), *rates]


def _latency(figures: Figures) -> Table:
    rows = [
        [f"{row.case}, {server}", *(number(value, 2) for value in values)]
        for row in figures.json
        if row.added_p50_ms is not None
        for server, values in (
            ("gateway", (row.gateway_p50_ms, row.gateway_p99_ms, row.added_p50_ms, row.added_p99_ms)),
            ("route", (row.route_p50_ms, row.route_p99_ms, row.route_added_p50_ms, row.route_added_p99_ms)),
        )
    ]
    return Table("One client: how long an answer takes", ("", "p50, ms", "p99, ms", "added p50", "added p99"), rows)


def _streams(figures: Figures) -> Table:
    head = (
        "case",
        "streams",
        "gateway, µs",
        "route, µs",
        "floor, µs",
        "ratio",
        "late p50, ms",
        "late p99, ms",
        "broken",
    )
    return Table("Streams: processor time of an event", head, [_stream_line(row) for row in figures.streams])


def _stream_line(row: StreamRow) -> list[str]:
    costs = [number(cost, 1) for cost in (row.gateway_us, row.route_us, row.floor_us)]
    late = [number(ms, 2) for ms in (row.gateway_p50_ms, row.gateway_p99_ms)]
    return [row.case, str(row.clients), *costs, number(row.ratio, 2), *late, str(row.broken)]


def _scale(figures: Figures) -> Table:
    head = (
        "server",
        "streams",
        "whole",
        "CPU, µs",
        "late p50, ms",
        "late p99, ms",
        "p99/p50",
        "gaps",
        "KB each",
    )
    title = "Many streams on one worker that has just started"
    return Table(title, head, [_scale_line(row) for row in figures.scale])


def _scale_line(row: Scale) -> list[str]:
    late = [number(value, 2) for value in (row.p50_ms, row.p99_ms, row.fairness, row.gap_spread)]
    return [row.server, number(row.streams), number(row.whole), number(row.cpu_us, 1), *late, number(row.kb_each)]


def _starts(figures: Figures) -> Table:
    rows = [
        [row.what, number(row.accepting_s, 2), number(row.ready_s, 2), number(row.memory_mb)] for row in figures.starts
    ]
    return Table("Start", ("", "accepts, s", "answers, s", "idle memory, MB"), rows)


def _layers(figures: Figures) -> Table:
    rows = [[row.what, number(row.us, 1), number(row.calls)] for row in figures.layers]
    return Table("Parts, in one process, without a network", ("part", "µs", "calls"), rows)


def _planning(figures: Figures) -> Table:
    found = figures.planning or {}
    rows = [_cells(row, ("candidates", 0), ("plan_us", 0), ("anew_us", 0)) for row in _mappings(found.get("rows"))]
    share, growth = number(found.get("share"), 2), number(found.get("growth"), 1)
    rows.append([f"50 over a request: {share}; 1,000 over 50: {growth}", "", ""])
    return Table("A plan of the auto engine", ("candidates", "a plan, µs", "that measures anew, µs"), rows)


def _leaks(figures: Figures) -> Table:
    rows = [[str(row["answer"]), *_cells(row, ("decode_us", 2), ("scan_us", 2), ("ratio", 1))] for row in figures.leaks]
    return Table("The leak guard's scanner, an event", ("answer", "decode, µs", "scan, µs", "ratio"), rows)


def _database(figures: Figures) -> Table:
    rows = [[str(row["what"]), *_cells(row, ("ms", 1))] for row in figures.database]
    return Table("A database full of usage rows", ("what", "ms"), rows)


def _cells(row: Mapping[str, object], *columns: tuple[str, int]) -> list[str]:
    return [number(row.get(name), places) for name, places in columns]


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []
