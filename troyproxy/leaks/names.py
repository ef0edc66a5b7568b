"""Is this the name of a declared tool? Models decorate names; they do not misspell them, so no edit distance."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

_PREFIXES: Final = ("functions.", "default_api.", "default_api:", "tools.")
_BESIDE: Final = " \t\r\n\"'`"


def is_declared(raw: str, names: AbstractSet[str]) -> bool:
    """Whether *raw* names one of *names*: as it is, undecorated, or as the only one but for case and ``-``/``_``."""
    return spelling(raw, names) is not None


def spelling(raw: str, names: AbstractSet[str]) -> str | None:
    """Return the declared name that *raw* means (see `is_declared`), or None."""
    name = plain(raw)
    if raw in names or name in names:
        return raw if raw in names else name
    alike = [known for known in names if _fold(known) == _fold(name)]
    return alike[0] if len(alike) == 1 else None


def begins_name(raw: str, names: AbstractSet[str]) -> bool:
    """Whether a longer *raw* could be the name of a declared tool, decorated or not."""
    part = _fold(plain(raw))
    decorating = any(prefix.startswith(raw) for prefix in _PREFIXES)
    return decorating or any(_fold(name).startswith(part) for name in names)


def plain(raw: str) -> str:
    """Return *raw* without quotes, ``functions.`` and its like, an index (``:0``), ``<|…``, and doubling (``N.N``)."""
    name = raw.strip(_BESIDE).partition("<|")[0].strip(_BESIDE)
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    head, _, index = name.rpartition(":")
    if head and (not index or index.isdecimal()):
        name = head
    left, _, right = name.partition(".")
    return left if left == right else name


def _fold(name: str) -> str:
    return name.lower().replace("-", "_")
