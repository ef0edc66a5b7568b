"""The trees of members behind combos, ``auto`` and ``default``, made once for each snapshot, not for each request."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from troyproxy.catalog.providers import Account
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.ports import Clock
from troyproxy.proxy.accounts import accounts_of
from troyproxy.proxy.call import Call
from troyproxy.proxy.trees import Tree
from troyproxy.routing.candidates import Candidate
from troyproxy.routing.expansion import by_account
from troyproxy.routing.members import Group
from troyproxy.routing.names import NameKind, Resolution
from troyproxy.routing.resolvers import Drifting, nobody_drifts, root_of, steady_first

PREFERRED: Final = b"x-troy-provider"
MOST: Final = 1_000
"""Trees that are kept; past that all are made anew."""
MOST_CARRIED: Final = 20_000
"""Members whose accounts are kept."""

_Name = str | tuple[str | bool | None, ...]


class Roots:
    """Owns the trees of the newest snapshot, and who may carry their members."""

    def __init__(self, clock: Clock, drifting: Drifting = nobody_drifts) -> None:
        self._clock, self._drifting = clock, drifting
        self._snapshot: Snapshot | None = None
        self._until = 0.0
        self._kept: dict[_Name, Tree] = {}
        self._carriers: dict[str, tuple[Candidate, Sequence[Account]]] = {}

    def of(self, call: Call, resolution: Resolution, now: float) -> Tree:
        """Return the tree of members for *call*, members by account where a strategy wants that."""
        if call.snapshot is not self._snapshot or now >= self._until:
            self._follow(call.snapshot, now)
        if resolution.kind is not NameKind.DEFAULT and PREFERRED not in call.fields:  # as in most requests
            kept = self._kept.get(resolution.canonical)
            if kept is not None and kept.source is (resolution.combo or resolution.provider):
                return kept
        return self._of(call, resolution)

    def _of(self, call: Call, resolution: Resolution) -> Tree:
        name, source = _name(call, resolution), resolution.combo or resolution.provider
        found = self._kept.get(name) if name is not None else None
        if found is None or found.source is not source:
            found = Tree.of(by_account(tree_of(call, resolution), self._names), source)
            if name is not None:
                self._keep(name, found)
        if resolution.kind is NameKind.DEFAULT and call.wants_tools:
            root = steady_first(found.root, self._drifting())
            return found if root is found.root else Tree.of(root, source)
        return found

    def _keep(self, name: _Name, tree: Tree) -> None:
        if len(self._kept) >= MOST:
            self._kept.clear()
        self._kept[name] = tree

    def carriers(self, candidate: Candidate) -> Sequence[Account]:
        """Return the accounts that may carry *candidate*, a member of the latest tree, best priority first."""
        kept = self._carriers.get(candidate.identity)
        if kept is not None and kept[0] is candidate:
            return kept[1]
        provider = candidate.provider
        now = self._clock.now()
        found = () if provider is None else accounts_of(provider, candidate.model, candidate.account, now)
        if len(self._carriers) >= MOST_CARRIED:
            self._carriers.clear()
        self._carriers[candidate.identity] = candidate, found
        return found

    def _names(self, candidate: Candidate) -> Sequence[str]:
        return [account.name for account in self.carriers(candidate)]

    def _follow(self, snapshot: Snapshot, now: float) -> None:
        """Forget the trees: the configuration has changed, or an account has run out."""
        self._snapshot, self._kept, self._carriers = snapshot, {}, {}
        ends = (a.token_expires_at for p in snapshot.providers.values() for a in p.accounts)
        self._until = min((end for end in ends if end is not None and end > now), default=math.inf)


def tree_of(call: Call, resolution: Resolution) -> Group:
    """Return the tree of members as it is configured. Raises InvalidRequest for an unknown ``x-troy-provider``."""
    return root_of(
        resolution,
        call.snapshot,
        wants_tools=call.wants_tools,
        header_provider=call.header(PREFERRED),
        key_provider=_of_key(call),
    )


def _name(call: Call, resolution: Resolution) -> _Name | None:
    """Return what the tree is kept under: all that it depends on beside the snapshot; None: it is not kept."""
    header = call.header(PREFERRED)
    if resolution.kind is NameKind.DEFAULT:
        return resolution.canonical, call.wants_tools, header, _of_key(call)
    return resolution.canonical if header is None else None


def _of_key(call: Call) -> str | None:
    return call.key.provider if call.key is not None else None
