"""From a resolved name to the tree of members that may serve it. Orders nothing and refuses nothing.

What cannot be followed (an unknown provider, a missing combo, a combo inside itself, a fourth level) stays in the
tree as a candidate without a provider, so that it shows among the skipped members instead of vanishing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from troyproxy.catalog.combos import Combo, Member
from troyproxy.catalog.providers import Provider
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.routing.candidates import Candidate, candidate_of
from troyproxy.routing.lookup import find_combo, find_model
from troyproxy.routing.names import Resolution
from troyproxy.routing.pool import odd_config, pool_of, unknown_in_pool

__all__ = [
    "AUTO",
    "MAX_DEPTH",
    "Candidate",
    "Group",
    "Unit",
    "candidate_of",
    "cycle",
    "expand",
    "leaves",
    "reference",
    "units_of",
    "warnings_of",
]

AUTO: Final = "auto"
"""The strategy whose members may be empty: then the connected providers are its pool."""
MAX_DEPTH: Final = 3
"""Levels of combos, the requested one included."""


@dataclass(frozen=True, slots=True)
class Group:
    """A combo with its members resolved. Inside another group it counts as one unit."""

    combo: Combo
    units: tuple[Unit, ...]
    weight: float = 1.0

    @property
    def identity(self) -> str:
        """What a cursor remembers."""
        return f"combo/{self.combo.id}"


Unit = Candidate | Group


def units_of(resolution: Resolution, snapshot: Snapshot, *, pool: Sequence[Candidate] = ()) -> Group:
    """Return the tree behind *resolution*.

    *pool* are the members of ``default`` and ``auto``, which are chosen per request (`resolvers`). A spec, ``default``
    and ``auto`` give an ephemeral group with strategy ``fallback``.
    """
    if resolution.combo is not None:
        return expand(resolution.combo, snapshot)
    units: tuple[Unit, ...] = tuple(pool)
    if resolution.provider is not None and resolution.model is not None:
        units = (candidate_of(resolution.provider, resolution.model),)
    return Group(Combo(id=resolution.canonical, name=resolution.canonical), units)


def expand(combo: Combo, snapshot: Snapshot) -> Group:
    """Return *combo* with all its members, at most three levels deep, whatever rings the store holds."""
    return _group(combo, snapshot, path=(combo.name,), weight=1.0)


def leaves(unit: Unit) -> Iterator[Candidate]:
    """Yield the candidates under *unit* in saved order."""
    if isinstance(unit, Candidate):
        yield unit
    else:
        for inner in unit.units:
            yield from leaves(inner)


def reference(member: Member, snapshot: Snapshot) -> Combo | None:
    """Return the combo that *member* refers to, or None: a string is a known model first, a combo only then."""
    if member.model is None:
        return find_combo(member.combo or "", snapshot)
    return None if find_model(member.model, snapshot) else find_combo(member.model, snapshot)


def cycle(combo: Combo, snapshot: Snapshot) -> list[str] | None:
    """Return the ring of combo names that saving *combo* would close (``["a", "b", "a"]``), or None.

    *combo* is laid over the snapshot: it replaces the one with its id, so that a rename is seen too.
    """
    others = {name: c for name, c in snapshot.combos.items() if c.id != combo.id}
    combos = others | {combo.name: combo}
    ids = {c.id: c.name for c in combos.values()}
    laid = Snapshot(
        providers=snapshot.providers,
        provider_names=snapshot.provider_names,
        catalog=snapshot.catalog,
        combos=combos,
        combo_ids=ids,
    )
    return _ring(combo, laid)


def has_account(provider: Provider, name: str) -> bool:
    """Whether a member of *provider* can be pinned to the account called *name*."""
    names = {name for account in provider.accounts for name in (account.name, account.id)}
    return name in (names or {f"{provider.id}-keyless"})


def warnings_of(combo: Combo, snapshot: Snapshot) -> list[str]:
    """Return what is odd about *combo* but no reason to refuse it, one sentence each, for the API and the loader."""
    unknown = unknown_in_pool(combo, snapshot)
    lost = dict.fromkeys(leaf.spec for leaf in leaves(expand(combo, snapshot)) if leaf.provider is None)
    said = [
        f"member '{spec}' is skipped: it names no configured provider, listed model or combo within three levels"
        for spec in lost
        if combo.members or spec not in unknown
    ]
    shadowed = find_model(combo.name, snapshot)
    if shadowed is not None:
        said.append(f"the name is also a model of {shadowed[0].id}: the bare name means the combo from now on")
    said += (
        f"member '{leaf.spec}' is skipped: {leaf.provider.id} has no account '{leaf.account}'"
        for leaf in leaves(expand(combo, snapshot))
        if leaf.provider is not None and leaf.account is not None and not has_account(leaf.provider, leaf.account)
    )
    said += (f"candidatePool: '{name}' is no configured provider and is skipped" for name in unknown)
    said += odd_config(combo)
    summarist = combo.config.get("handoff_model")
    if isinstance(summarist, str) and find_model(summarist, snapshot) is None:
        said.append(f"handoff_model '{summarist}' names no model of a configured provider: nothing is handed over")
    return said


def _ring(start: Combo, snapshot: Snapshot) -> list[str] | None:
    """Search breadth first, so that the shortest ring is named and no depth of nesting exhausts the stack."""
    queue: list[tuple[Combo, list[str]]] = [(start, [start.name])]
    seen: set[str] = set()
    for combo, path in queue:
        for member in combo.members:
            inner = reference(member, snapshot)
            if inner is None or inner.name in seen:
                continue
            if inner.name == start.name:
                return [*path, inner.name]
            seen.add(inner.name)
            queue.append((inner, [*path, inner.name]))
    return None


def _group(combo: Combo, snapshot: Snapshot, *, path: tuple[str, ...], weight: float) -> Group:
    if combo.strategy == AUTO and not combo.members:
        return Group(combo, pool_of(combo, snapshot), weight)
    return Group(combo, tuple(_unit(member, snapshot, path) for member in combo.members), weight)


def _unit(member: Member, snapshot: Snapshot, path: tuple[str, ...]) -> Unit:
    found = find_model(member.model, snapshot) if member.model is not None else None
    if found is not None:
        return candidate_of(*found, account=member.account, weight=member.weight)
    inner = find_combo(member.label, snapshot)
    if inner is None or inner.name in path or len(path) >= MAX_DEPTH:
        return Candidate(member.label, None, "", account=member.account, weight=member.weight)
    return _group(inner, snapshot, path=(*path, inner.name), weight=member.weight)
