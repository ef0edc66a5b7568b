"""The plot, and the page it is put into."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.bench.figures import FLOOR, OURS, ROUTE, Figures, Layer
from tests.bench.plot import plot
from tests.bench.writing import BEGIN, END, PAGE, replaced

LINES = {OURS: [(1, 90.0), (1000, 40.0)], ROUTE: [(1, 200.0), (1000, 70.0)], FLOOR: [(1, 80.0), (1000, 38.0)]}
DOCS = Path(__file__).parents[2] / "docs"


def _shapes(name: str) -> list[dict[str, str]]:
    picture = ET.fromstring(plot(LINES))  # noqa: S314 -- it is our own
    return [dict(each.attrib) for each in picture.iter(f"{{http://www.w3.org/2000/svg}}{name}")]


def test_more_streams_are_further_right_and_a_higher_cost_is_further_up() -> None:
    first, last = ((float(dot["cx"]), float(dot["cy"])) for dot in _shapes("circle")[:2])
    assert first[0] < last[0]
    assert first[1] < last[1]


def test_the_names_of_lines_do_not_lie_on_each_other() -> None:
    heights = sorted(float(text["y"]) for text in _shapes("text") if text.get("class") in LINES)
    assert min(below - above for above, below in pairwise(heights)) >= 18


def test_only_the_block_of_figures_is_replaced() -> None:
    page = replaced(f"before\n{BEGIN}old\n{END}after\n", Figures({"cores": 2}, layers=[Layer("a part", 1.0)]))
    assert page.startswith(f"before\n{BEGIN}")
    assert page.endswith(f"{END}after\n")
    assert "old" not in page
    assert "| a part | 1.0 | - |" in page


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="marks"):
        replaced("nothing", Figures({}))


def test_the_documentation_has_the_marks() -> None:
    assert BEGIN in (DOCS / PAGE).read_text(encoding="utf-8")
