"""Reads the tables of ``docs/strategies.md`` and makes of them what the strategies themselves take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.routing.rounds import NOW
from troyproxy.accounting.price import cost_usd
from troyproxy.accounting.usage import Usage
from troyproxy.catalog.models import Limits, Model
from troyproxy.routing.candidates import Candidate
from troyproxy.routing.readings import Quota, Reading

PAGE: Final = (Path(__file__).parent.parent / "docs" / "strategies.md").read_text(encoding="utf-8")
UNKNOWN: Final = "\N{EN DASH}"
NOT_READ: Final = frozenset({"place", "leads", "value", "promise", "state"})
"""Columns that say what comes out, or why somebody is not asked."""
SESSION_S, WEEK_S = 18_000.0, 604_800.0

Rows = list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example: what its first line says, and its table."""

    told: str
    rows: Rows

    def said(self, pattern: str) -> str | None:
        """Return the group of *pattern* in the example's first line."""
        found = re.search(pattern, self.told)
        return found[1] if found is not None else None

    @property
    def tokens(self) -> int:
        """What the request needs, in tokens."""
        return int((self.said(r"needs ([\d,]+) tokens") or "0").replace(",", ""))


def example(strategy: str) -> Example:
    """Return the example of the section that is headed with *strategy*."""
    sections = re.split(r"^#{1,3} ", PAGE, flags=re.MULTILINE)
    (section,) = (text for text in sections if strategy in re.split(r" and |\n", text)[:2])
    found = re.search(r"^(Example[^\n]*):\n\n((?:\|.*\n)+)", section, re.MULTILINE)
    assert found is not None, f"{strategy} has no example"
    return Example(found[1], _rows(found[2]))


def marked(name: str) -> Rows:
    """Return the rows of the table between the comments called *name*."""
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", PAGE, re.DOTALL)
    assert found is not None, f"the page has no table {name}"
    return _rows(found[1])


def number(cell: str) -> float | None:
    """Return the number in *cell*; percents are fractions."""
    if cell == UNKNOWN:
        return None
    return float(cell.removesuffix(" %")) / (100 if cell.endswith("%") else 1)


def unit(row: Mapping[str, str]) -> Candidate:
    """Return the member in *row*."""
    window, weight = number(row.get("window", UNKNOWN)), number(row.get("weight", "1"))
    limits = Limits(None if window is None else int(window))
    return Candidate(row["member"], None, row["member"], Model(row["member"], limits=limits), weight=weight or 0.0)


def reading(row: Mapping[str, str]) -> Reading:
    """Return what is measured of the member in *row*. An unknown column is an error: it would be believed unread."""
    cells = {name: cell for name, cell in row.items() if name not in NOT_READ | {"member", "weight", "window"}}
    quotas = tuple(
        Quota(name, left, NOW + (number(cells.pop(reset)) or 0.0) * unit_s, length_s, own=name == "own left")
        for name, reset, unit_s, length_s in _WINDOWS
        if name in cells and (left := number(cells.pop(name))) is not None
    )
    for _, reset, _, _ in _WINDOWS:
        cells.pop(reset, None)
    read = Reading(
        inflight=int(number(cells.pop("in flight", "0")) or 0),
        recent=int(number(cells.pop("last hour", "0")) or 0),
        last_used_at=NOW - 60 * (number(cells.pop("idle (min)", "0")) or 0.0),
        success_rate=number(cells.pop("success", UNKNOWN)),
        p50_ms=number(cells.pop("p50 (ms)", UNKNOWN)),
        half_open=cells.pop("circuit", "closed") == "half-open",
        cost_usd=number(cells.pop("cost ($)", UNKNOWN)),
        quotas=quotas,
    )
    unread = {name for name, cell in cells.items() if cell != UNKNOWN} - {"input ($/M)", "output ($/M)"}
    assert not unread, f"columns that nobody reads: {unread}"
    return read


_WINDOWS: Final = (
    ("upstream left", "reset (min)", 60.0, SESSION_S),
    ("own left", "reset (min)", 60.0, SESSION_S),
    ("5 h left", "5 h reset (min)", 60.0, SESSION_S),
    ("7 d left", "7 d reset (h)", 3600.0, WEEK_S),
)
"""Columns of a window: what is left, when it is reset, in what unit of seconds, and its length."""


def price(row: Mapping[str, str], usage: Usage) -> float | None:
    """Return what *usage* costs at the prices in *row*."""
    return cost_usd(usage, number(row["input ($/M)"]), number(row["output ($/M)"]), None)


def _rows(table: str) -> Rows:
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().split("\n")]
    head, _, *body = lines
    return [dict(zip(head, line, strict=True)) for line in body]
