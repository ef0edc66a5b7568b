"""How well a model does a task, from a table of patterns; and what its name alone tells of a model that is not in it.

A pattern matches a name at token boundaries: ``o1`` is ``o1`` and ``o1-preview``, not ``o10``; ``*`` stands for any
tokens between. Of several the one with the longest literal beginning wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

UNKNOWN: Final = 0.5
CODER_AT_LEAST: Final = 0.85
FAST_BONUS: Final = 0.05
THINKING_BONUS: Final = 0.10
_SEPARATORS: Final = re.compile(r"[-_./:@ ]+")


class Task(StrEnum):
    """What a request is about."""

    CODING = "coding"
    REVIEW = "review"
    PLANNING = "planning"
    ANALYSIS = "analysis"
    DEBUGGING = "debugging"
    DOCUMENTATION = "documentation"
    DEFAULT = "default"


Cells = Mapping[Task, float]
NO_CELLS: Final[Cells] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table. A blank cell falls back to the row's default, then to its family's."""

    pattern: str
    cells: Cells
    family: str = ""


@dataclass(frozen=True, slots=True)
class FitnessTable:
    """The rows, the longest literal beginning first, and the families' defaults."""

    rows: tuple[tuple[re.Pattern[str], Row], ...] = ()
    families: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def row_of(self, model: str) -> Row | None:
        """Return the row for the id *model*, whose vendor prefix does not count."""
        name = _plain(model.rpartition("/")[2])
        return next((row for pattern, row in self.rows if pattern.match(name)), None)

    def cells_of(self, model: str, over: Cells = NO_CELLS) -> dict[Task, float]:
        """Return the fitness of *model* for every task; *over* are a user's own values.

        A model that the table does not know takes a ``default`` of the user's for what he says nothing of.
        """
        row = self.row_of(model)
        cells = self._known(row) if row is not None else _guessed(_tokens(model), over.get(Task.DEFAULT, UNKNOWN))
        if "coder" in _tokens(model):
            cells[Task.CODING] = max(CODER_AT_LEAST, cells[Task.CODING])
        return {**cells, **over}

    def _known(self, row: Row) -> dict[Task, float]:
        blank = row.cells.get(Task.DEFAULT, self.families.get(row.family, UNKNOWN))
        return {task: row.cells.get(task, blank) for task in Task}


def table(rows: Iterable[Row], families: Mapping[str, float]) -> FitnessTable:
    """Return the table of *rows*; of equals the later one wins."""
    ranked = sorted(enumerate(rows), key=lambda at: (-_literal(at[1].pattern), -len(at[1].pattern), -at[0]))
    return FitnessTable(tuple((_compiled(row.pattern), row) for _, row in ranked), MappingProxyType(dict(families)))


def _guessed(tokens: frozenset[str], blank: float) -> dict[Task, float]:
    cells = dict.fromkeys(Task, blank)
    if "fast" in tokens:
        cells[Task.CODING] += FAST_BONUS
    if "thinking" in tokens:
        cells[Task.PLANNING] += THINKING_BONUS
        cells[Task.ANALYSIS] += THINKING_BONUS
    return {task: min(1.0, value) for task, value in cells.items()}


def _tokens(model: str) -> frozenset[str]:
    return frozenset(_SEPARATORS.split(model.lower()))


def _plain(name: str) -> str:
    return _SEPARATORS.sub("-", name.lower()).strip("-")


def _literal(pattern: str) -> int:
    return len(pattern.partition("*")[0])


def _compiled(pattern: str) -> re.Pattern[str]:
    pieces = [_SEPARATORS.sub("-", piece.lower()) for piece in pattern.split("*")]
    return re.compile(f"{'.*'.join(map(re.escape, pieces))}(?:-|$)")
