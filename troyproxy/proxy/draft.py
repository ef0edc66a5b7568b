"""A plan before it is in force: the members, the order, what the auto engine decided, and what is remembered of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from troyproxy.proxy.auto_run import AutoRun
from troyproxy.proxy.call import Call, MemoryKey
from troyproxy.proxy.memory import TargetMemory, identity_in, key_of, session_of
from troyproxy.routing.eligibility import Skip
from troyproxy.routing.members import Group
from troyproxy.routing.order import Plan

LKGP, RELAY = "lkgp", "context-relay"
REMEMBERING: Final = frozenset({LKGP, RELAY})


@dataclass(frozen=True, slots=True)
class Draft:
    """What a plan would be. *run*: of the auto engine, where it had to decide."""

    root: Group
    plan: Plan
    run: AutoRun | None = None
    remember: tuple[MemoryKey, ...] = ()
    settled: bool = False
    """Somebody serves, nobody was left out, and there is nothing to apply, to remember or to tell."""

    @property
    def skips(self) -> tuple[Skip, ...]:
        """Everybody who was left out, with the reason."""
        return self.plan.skipped if self.run is None else (*self.plan.skipped, *self.run.skips)


def groups_of(root: Group) -> Iterator[Group]:
    """Yield *root* and every combo inside it."""
    yield root
    for unit in root.units:
        if isinstance(unit, Group):
            yield from groups_of(unit)


def recalled(memory: TargetMemory, call: Call, group: Group) -> str | None:
    """Return the identity of the target that the strategy of *group* remembers for this caller, or None."""
    combo = group.combo
    if combo.strategy not in REMEMBERING or (combo.strategy == RELAY and session_of(call) is None):
        return None
    return identity_in(memory.last(key_of(call, combo)), group)


def remembered(call: Call, groups: Iterable[Group], run: AutoRun | None) -> Iterator[MemoryKey]:
    """Yield the keys under which a success of *call* is to be remembered.

    What was only tried out is not, or one request in twenty would decide for all that follow. A session stays with
    whoever served it, for whatever reason.
    """
    for group in groups:
        strategy = group.combo.strategy
        if strategy == LKGP or (strategy == RELAY and session_of(call) is not None):
            yield key_of(call, group.combo)
    for made in run.decided if run is not None else ():
        if session_of(call) is not None or not made.decision.experiment:
            yield made.memory_key
