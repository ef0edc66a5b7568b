"""Is this the name of a declared tool? Models decorate names; they do not misspell them, so no edit distance."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

_PREFIXES: Final = ("functions.", "default_api.", "tools.")


def is_declared(raw: str, names: AbstractSet[str]) -> bool:
    """Whether *raw* names one of *names*: as it is, undecorated, or as the only one but for case and ``-``/``_``."""
    name = plain(raw)
    return raw in names or name in names or [_fold(known) for known in names].count(_fold(name)) == 1


def plain(raw: str) -> str:
    """Return *raw* without ``functions.`` and its like, a call index (``:0``), and doubling (``N.N``)."""
    name = raw.strip()
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    head, _, index = name.rpartition(":")
    if head and (not index or index.isdecimal()):
        name = head
    left, _, right = name.partition(".")
    return left if left == right else name


def _fold(name: str) -> str:
    return name.lower().replace("-", "_")
