"""Many rows into a SQLite file, in as few steps as can be.

The driver lets go of the interpreter at every step of a statement, and while the event loop is busy it waits up to 5 ms
to get it back: a step for each row would be too slow by far under load, and so expensive that the load gets worse. So
rows go in by the dozen, 2, 4, 8 … of them in one statement; the driver keeps these few statements prepared.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from sqlalchemy import Insert
from sqlalchemy.dialects import sqlite

MOST: Final = 128
"""Rows of one statement; with the 35 columns of a usage row well below SQLite's 32,766 parameters."""
Values = tuple[object, ...]


class SqliteInsert:
    """An INSERT as text, for any number of rows. *statement* may say what becomes of a conflict.

    A column that *without* names is left to the database.
    """

    def __init__(self, statement: Insert, *, without: str = "") -> None:
        names = [column.name for column in statement.table.columns if column.name != without]
        compiled = statement.compile(dialect=sqlite.dialect(), column_keys=names)
        self.names: tuple[str, ...] = tuple(compiled.positiontup or ())
        """The columns of a row, in order."""
        one = f"({', '.join('?' * len(self.names))})"
        before, found, after = str(compiled).partition(one)
        self._texts = {size: f"{before}{', '.join([found] * size)}{after}" for size in _sizes(MOST)}

    def run(self, connection: sqlite3.Connection, rows: Sequence[Values]) -> int:
        """Insert *rows*, and return how many of them were not there before (or were changed by it)."""
        new, at = 0, 0
        for size in _sizes(len(rows)):
            while len(rows) - at >= size:
                values = tuple(chain.from_iterable(rows[at : at + size]))
                new += connection.execute(self._texts[size], values).rowcount
                at += size
        return new


def _sizes(most: int) -> Iterator[int]:
    """Yield the powers of two up to *most* and `MOST`, the largest first."""
    size = MOST
    while size:
        if size <= most:
            yield size
        size //= 2
