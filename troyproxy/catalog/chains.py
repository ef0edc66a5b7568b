"""Combos that refer to combos: what a member means, rings, and depth. Pure; used by the file, the API and the planner.

Writing a ring is refused where combos are written; who walks combos must still be safe against one, because the file
and the database can close a ring together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from troyproxy.catalog.combos import Combo, Member

MAX_DEPTH: Final = 3
"""A combo of models has depth 1."""


def resolve_member(member: Member, combos: Mapping[str, str], is_model: Callable[[str], bool]) -> Member | None:
    """Return *member* with its text read: a known model, else a combo reference; None when it is neither.

    *combos* maps every combo's name and id to its name. A reference to a combo ends up as that combo's name.
    """
    if member.combo is not None:
        return replace(member, combo=combos[member.combo]) if member.combo in combos else None
    text = member.model or ""
    if is_model(text):
        return member
    name = combos.get(text)
    return Member(combo=name, weight=member.weight) if name is not None else None


def references(combo: Combo) -> tuple[str, ...]:
    """Return the names of the combos that *combo* refers to, in order."""
    return tuple(m.combo for m in combo.members if m.combo is not None)


def find_ring(combos: Mapping[str, Combo]) -> tuple[str, ...] | None:
    """Return the names of a ring, first name repeated at the end (``a, b, a``), or None. *combos* are by name."""
    done: set[str] = set()
    for name in combos:
        ring = _walk(name, combos, done)
        if ring is not None:
            return ring
    return None


def _walk(start: str, combos: Mapping[str, Combo], done: set[str]) -> tuple[str, ...] | None:
    path: list[str] = [start]
    rest = [list(references(combos[start]))]
    while path:
        if not rest[-1]:
            done.add(path.pop())
            rest.pop()
            continue
        name = rest[-1].pop(0)
        if name in path:
            return (*path[path.index(name) :], name)
        if name in combos and name not in done:
            path.append(name)
            rest.append(list(references(combos[name])))
    return None


def depth(name: str, combos: Mapping[str, Combo]) -> int:
    """Return how deep the combo *name* nests; a combo of models is 1. Only for combos without a ring."""
    level, deep = {name}, 0
    while level:
        level = {ref for inner in level for ref in references(combos[inner]) if ref in combos}
        deep += 1
    return deep
