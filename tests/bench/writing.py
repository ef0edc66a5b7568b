"""Puts the figures of a run into the documentation: the block between two marks, and the plot beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.bench.figures import Figures
from tests.bench.plot import plot, series
from tests.bench.tables import tables

BEGIN: Final = "<!-- figures: `python -m tests.bench --write docs` -->\n"
END: Final = "<!-- /figures -->\n"
PAGE: Final = "performance.md"
PLOT: Final = "performance.svg"


def block(figures: Figures) -> str:
    """Return the figures in Markdown: what machine it was, the plot, and a section for each table."""
    machine = ", ".join(f"{name} {value}" for name, value in figures.machine.items())
    picture = f"![Processor time of an event, over the number of live streams]({PLOT})" if series(figures) else ""
    sections = [f"### {table.title}\n\n{table.markdown()}" for table in tables(figures)]
    return "\n\n".join(part for part in (f"Measured with: {machine}.", picture, *sections) if part) + "\n"


def replaced(page: str, figures: Figures) -> str:
    """Return *page* with the figures between its marks. Raises ValueError when it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no marks {BEGIN.strip()} and {END.strip()}")
    return f"{before}{begin}\n{block(figures)}\n{end}{after}"


def write(figures: Figures, docs: Path) -> None:
    """Write the page and the plot into the folder *docs*. Raises ValueError when the page has no marks."""
    page = docs / PAGE
    page.write_text(replaced(page.read_text(encoding="utf-8"), figures), encoding="utf-8")
    if lines := series(figures):
        (docs / PLOT).write_text(plot(lines), encoding="utf-8")
