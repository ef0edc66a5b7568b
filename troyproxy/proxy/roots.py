"""The trees of members behind combos and ``auto``, made once for each snapshot instead of once for each request."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from troyproxy.catalog.combos import Combo
from troyproxy.catalog.providers import Account
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.ports import Clock
from troyproxy.proxy.accounts import accounts_of
from troyproxy.proxy.call import Call
from troyproxy.routing.candidates import Candidate
from troyproxy.routing.expansion import by_account
from troyproxy.routing.members import Group
from troyproxy.routing.names import NameKind, Resolution
from troyproxy.routing.needs import Needs
from troyproxy.routing.resolvers import root_of

MOST: Final = 1_000
"""Trees that are kept; past that all are made anew."""
MOST_CARRIED: Final = 20_000
"""Members whose accounts are kept."""


class Roots:
    """Owns the trees of the newest snapshot, and who may carry their members."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._snapshot: Snapshot | None = None
        self._until = 0.0
        self._kept: dict[str, tuple[Combo | None, Group]] = {}
        self._carriers: dict[str, tuple[Candidate, Sequence[Account]]] = {}

    def of(self, call: Call, resolution: Resolution, needs: Needs) -> Group:
        """Return the tree of members for *call*, members by account where a strategy wants that."""
        self._follow(call.snapshot)
        lasting = resolution.combo is not None or resolution.kind is NameKind.AUTO
        if not lasting or call.header(b"x-troy-provider") is not None:
            return by_account(tree_of(call, resolution, needs), self._names)
        kept = self._kept.get(resolution.canonical)
        if kept is not None and kept[0] is resolution.combo:
            return kept[1]
        made = by_account(tree_of(call, resolution, needs), self._names)
        if len(self._kept) >= MOST:
            self._kept.clear()
        self._kept[resolution.canonical] = resolution.combo, made
        return made

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

    def _follow(self, snapshot: Snapshot) -> None:
        """Forget the trees when the configuration has changed, or an account has run out."""
        now = self._clock.now()
        if snapshot is self._snapshot and now < self._until:
            return
        self._snapshot, self._kept, self._carriers = snapshot, {}, {}
        ends = (a.token_expires_at for p in snapshot.providers.values() for a in p.accounts)
        self._until = min((end for end in ends if end is not None and end > now), default=math.inf)


def tree_of(call: Call, resolution: Resolution, needs: Needs) -> Group:
    """Return the tree of members as it is configured. Raises InvalidRequest for an unknown ``x-troy-provider``."""
    return root_of(
        resolution,
        call.snapshot,
        wants_tools=needs.tools or call.header(b"x-troy-wants-tools") == "1",
        header_provider=call.header(b"x-troy-provider"),
        key_provider=call.key.provider if call.key is not None else None,
    )
