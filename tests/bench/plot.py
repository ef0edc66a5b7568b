"""A plot as SVG, without a library: cost of an event over the number of streams, one line for each server.

Both axes are logarithmic. It has a light and a dark form; the reader's system decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from tests.bench.figures import FLOOR, OURS, ROUTE, Figures

WIDTH: Final = 760
HEIGHT: Final = 420
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 56, 60
NAMES: Final = {OURS: "troyproxy", ROUTE: "plain route", FLOOR: "floor"}
TICKS: Final = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
STYLE: Final = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.paper { fill: #ffffff }
.title { font-size: 15px; font-weight: 600 }
.grid { stroke: #d0d7de; stroke-width: 1 }
.line { fill: none; stroke-width: 2.5 }
.gateway { stroke: #0b62d6; fill: #0b62d6 }
.route { stroke: #b35900; fill: #b35900 }
.floor { stroke: #57606a; fill: #57606a }
.line.gateway, .line.route, .line.floor { fill: none }
text.gateway, text.route, text.floor { stroke: none; font-weight: 600 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .paper { fill: #0d1117 }
  .grid { stroke: #30363d }
  .gateway { stroke: #6cb6ff; fill: #6cb6ff }
  .route { stroke: #f0a35e; fill: #f0a35e }
  .floor { stroke: #9da7b3; fill: #9da7b3 }
  .line.gateway, .line.route, .line.floor { fill: none }
}
"""

Points = Sequence[tuple[int, float]]
"""Streams, and microseconds for an event."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """Where values lie: logarithmic from *low* to *high*, on the pixels from *begin* to *end*."""

    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        """Return the pixel of *value*."""
        share = (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return round(self.begin + share * (self.end - self.begin), 1)


def series(figures: Figures) -> dict[str, Points]:
    """Return a line for each server: the concurrencies of the live streams, and the many on a fresh server."""
    found: dict[str, list[tuple[int, float]]] = {name: [] for name in NAMES}
    for row in figures.streams:
        costs = {OURS: row.gateway_us, ROUTE: row.route_us, FLOOR: row.floor_us}
        for name, cost in costs.items():
            if cost and row.case == "live":
                found[name].append((row.clients, cost))
    for many in figures.scale:
        if many.cpu_us:
            found[many.server].append((many.streams, many.cpu_us))
    return {name: sorted(points) for name, points in found.items() if points}


def plot(lines: Mapping[str, Points]) -> str:
    """Return the picture of *lines*, which are not empty."""
    streams = sorted({at for points in lines.values() for at, _ in points})
    costs = [cost for points in lines.values() for _, cost in points]
    low = max((tick for tick in TICKS if tick <= min(costs)), default=TICKS[0] / 2)
    high = min((tick for tick in TICKS if tick >= max(costs)), default=max(costs))
    across = Scaled(streams[0], max(streams[-1], streams[0] * 2), LEFT, WIDTH - RIGHT)
    up = Scaled(low, max(high, low * 2), HEIGHT - BOTTOM, TOP)
    ticks = [tick for tick in TICKS if low <= tick <= high]
    parts = [*_frame(), *_grid(streams, ticks, across, up), *_lines(lines, across, up)]
    return "\n".join([*parts, "</svg>", ""])


def _frame() -> Iterator[str]:
    label = "Processor time of an event of a stream, over the number of live streams"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{escape(label)}">'
    )
    yield f"<style>{STYLE}</style>"
    yield f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
    yield f'<text class="title" x="{LEFT}" y="26">{escape(label)}</text>'
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turned = f'transform="rotate(-90 18 {middle})" text-anchor="middle"'
    yield f'<text x="18" y="{middle}" {turned}>µs of CPU per event</text>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 14}" text-anchor="middle">live streams</text>'


def _grid(streams: Sequence[int], ticks: Sequence[float], across: Scaled, up: Scaled) -> Iterator[str]:
    for tick in ticks:
        y = up.at(tick)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{tick:,.0f}</text>'
    for count in streams:
        x = across.at(count)
        yield f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        yield f'<text x="{x}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{count:,}</text>'


def _lines(lines: Mapping[str, Points], across: Scaled, up: Scaled) -> Iterator[str]:
    ends = _apart({name: up.at(points[-1][1]) for name, points in lines.items()})
    for name, points in lines.items():
        spots = [(across.at(count), up.at(cost)) for count, cost in points]
        yield f'<polyline class="line {name}" points="{" ".join(f"{x},{y}" for x, y in spots)}"/>'
        for (x, y), (count, cost) in zip(spots, points, strict=True):
            about = f"{NAMES[name]}, {count:,} streams: {cost:.1f} µs"
            yield f'<circle class="{name}" cx="{x}" cy="{y}" r="4"><title>{escape(about)}</title></circle>'
        label = f"{NAMES[name]}, {points[-1][1]:.0f} µs"
        yield f'<text class="{name}" x="{spots[-1][0] + 10}" y="{ends[name] + 4}">{escape(label)}</text>'


def _apart(ends: Mapping[str, float], least: float = 18.0) -> dict[str, float]:
    """Return where the names stand, from the top: at the end of their lines, but not on each other."""
    found: dict[str, float] = {}
    last = -least
    for name, y in sorted(ends.items(), key=lambda each: each[1]):
        last = max(y, last + least)
        found[name] = last
    return found
