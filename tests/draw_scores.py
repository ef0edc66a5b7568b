"""Draws the score of the golden pool by factor, under every set of weights, from the code's own data.

``python -m tests.draw_scores`` writes ``docs/scores.svg``; a test says when the committed file is not what it draws.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Final

from tests.auto.pools import golden_factors
from troyproxy.auto.factors import Factors, score
from troyproxy.auto.weights import DEFAULT, FACTORS, PACKS, Weights

PICTURE: Final = Path(__file__).parent.parent / "docs" / "scores.svg"
SETS: Final[Mapping[str, Weights]] = {"default": DEFAULT, **PACKS}
NAMES: Final = "ABC"
DARK, LIGHT, GREY = "#1f2328", "#ffffff", "#59636e"
COLOURS: Final[Mapping[str, tuple[str, str]]] = {
    "health": ("#2f7d4f", LIGHT),
    "quota": ("#9fd3c7", DARK),
    "costInv": ("#f2b84b", DARK),
    "latencyInv": ("#2f6db5", LIGHT),
    "taskFit": ("#a8456f", LIGHT),
    "specificityMatch": ("#c9b8e8", DARK),
    "stability": ("#6b5b4d", LIGHT),
    "tierPriority": ("#e58a5b", DARK),
    "tierAffinity": ("#c5ccd3", DARK),
}
"""Fill and ink of a factor; the ground of the picture is white whatever the page's is."""

WIDTH, LEFT, TOP, UNIT = 880, 172, 112, 620
"""Pixels: of the picture, to the bars, to the first of them, and of a score of 1."""
BAR, STEP, GAP = 18, 22, 16
LEGEND: Final = (24, 168, 5)
"""Left end, width of a column, and columns of the legend."""
SMALLEST: Final = 0.045
"""A share below this is too narrow for its number."""


def draw() -> str:
    """Return the picture as SVG."""
    height = TOP + len(SETS) * (3 * STEP + GAP) + 30
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t d">',
            "<style>text { font-family: system-ui, -apple-system, 'DejaVu Sans', sans-serif }</style>",
            '<title id="t">Score by factor of three candidates under five sets of weights</title>',
            f'<desc id="d">{escape(" ".join(_told()))}</desc>',
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="{LIGHT}" stroke="#d1d9e0"/>',
            _text(24, 32, "Score by factor: the golden pool under five sets of weights", size=16, weight=600),
            *_legend(),
            *_axis(height - 30),
            *(line for place, name in enumerate(SETS) for line in _set(place, name)),
            "</svg>",
            "",
        )
    )


def _told() -> Iterator[str]:
    for name, weights in SETS.items():
        scores = (f"{who} {score(weights, factors):.4f}" for who, factors in zip(NAMES, golden_factors(), strict=True))
        yield f"{name}: {', '.join(scores)}."


def _legend() -> Iterator[str]:
    left, wide, columns = LEGEND
    for at, factor in enumerate(FACTORS):
        x, y = left + at % columns * wide, 48 + at // columns * 20
        yield f'<rect x="{x}" y="{y}" width="12" height="12" rx="2" fill="{COLOURS[factor][0]}"/>'
        yield _text(x + 18, y + 10, factor, size=12)


def _axis(bottom: int) -> Iterator[str]:
    for tenth in range(0, 11, 2):
        x = LEFT + UNIT * tenth // 10
        yield f'<path d="M{x} {TOP - 8}V{bottom}" stroke="#d1d9e0"/>'
        yield _text(x, bottom + 16, f"{tenth / 10:.1f}", size=11, ink=GREY, anchor="middle")


def _set(place: int, name: str) -> Iterator[str]:
    """Yield the three bars of one set of weights, the best score in bold."""
    top = TOP + place * (3 * STEP + GAP)
    weights, pool = SETS[name], golden_factors()
    best = max(score(weights, factors) for factors in pool)
    yield _text(24, top + STEP + 13, name, size=13, weight=600)
    for at, factors in enumerate(pool):
        y, total = top + at * STEP, score(weights, factors)
        yield _text(LEFT - 10, y + 13, NAMES[at], size=12, ink=GREY, anchor="end")
        yield from _bar(y, f"{name}, {NAMES[at]}", weights, factors)
        x = LEFT + round(UNIT * total) + 4
        yield f'<rect x="{x}" y="{y}" width="54" height="{BAR}" fill="{LIGHT}"/>'  # no grid behind the number
        yield _text(x + 4, y + 13, f"{total:.4f}", size=12, weight=700 if total == best else 400)


def _bar(y: int, whose: str, weights: Weights, factors: Factors) -> Iterator[str]:
    x = float(LEFT)
    for factor in FACTORS:
        share = weights[factor] * factors[factor]
        fill, ink = COLOURS[factor]
        if share > 0:
            told = (
                f"{whose}: {factor} {weights[factor]:.2f} \N{MULTIPLICATION SIGN} {factors[factor]:.3f} = {share:.4f}"
            )
            yield (
                f'<rect x="{x:.1f}" y="{y}" width="{UNIT * share:.1f}" height="{BAR}" fill="{fill}">'
                f"<title>{escape(told)}</title></rect>"
            )
        if share >= SMALLEST:
            number = f"{share:.2f}"[1:]
            yield _text(x + UNIT * share / 2, y + 13, number, size=11, ink=ink, anchor="middle")
        x += UNIT * share


def _text(x: float, y: int, text: str, *, size: int, ink: str = DARK, weight: int = 400, anchor: str = "start") -> str:
    more = "" if anchor == "start" else f' text-anchor="{anchor}"'
    bold = "" if weight == 400 else f' font-weight="{weight}"'
    return f'<text x="{x:g}" y="{y}" font-size="{size}" fill="{ink}"{more}{bold}>{escape(text)}</text>'


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    sys.stdout.write(f"{PICTURE}\n")
