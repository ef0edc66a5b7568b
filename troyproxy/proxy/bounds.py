"""Keeps a table whose keys may come from clients within its bound: what was not used for longest goes.

A plain dict in the order of use: one lookup for each use, however large it is.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def use(table: dict[K, V], key: K, make: Callable[[], V], bound: int) -> V:
    """Return what *table* has under *key*, made if there is nothing; it is the one used last."""
    found = table.pop(key, None)
    if found is None:
        found = make()
        if len(table) >= bound:
            drop(table, bound)
    table[key] = found
    return found


def drop(table: dict[K, V], bound: int) -> None:
    """Make room for one more: an eighth of *bound* at once, since finding the first of a dict costs when it is rare."""
    for key in tuple(islice(table, len(table) - bound + max(1, bound // 8))):
        del table[key]
