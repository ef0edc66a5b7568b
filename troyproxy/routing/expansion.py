"""Members by account and combos by member, where a strategy chooses between them. Orders nothing, leaves nobody out.

`fill-first` can use one account up before the next only if each is a member of its own. The other strategies choose
between models; which account carries the attempt is decided at the attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from troyproxy.routing.members import Candidate, Group, Unit, leaves
from troyproxy.routing.strategies import BY_ACCOUNT, TO_LEAVES

Accounts = Callable[[Candidate], Sequence[str]]
"""Names the accounts that may carry a candidate now, in the order in which they are preferred."""


def by_account(group: Group, accounts: Accounts) -> Group:
    """Return *group* with each member that pins no account replaced by one member for each of its accounts.

    That is for groups whose strategy is in `BY_ACCOUNT`; nested ones go by their own. Before that, strategies in
    `TO_LEAVES` see the members of the combos in them rather than those combos. The saved order is kept. A member
    with a single account is pinned to it too, so that what is remembered of it stays true when it gets a second one. A
    member without any stays as it is: the plan says why it is out.
    """
    spread = group.combo.strategy in BY_ACCOUNT
    if not spread and all(isinstance(unit, Candidate) for unit in group.units):
        return group
    members = tuple(leaves(group)) if group.combo.strategy in TO_LEAVES else group.units
    units = tuple(unit for each in members for unit in _units(each, accounts, spread=spread))
    return group if units == group.units else replace(group, units=units)


def _units(unit: Unit, accounts: Accounts, *, spread: bool) -> Iterator[Unit]:
    if isinstance(unit, Group):
        yield by_account(unit, accounts)
        return
    names = accounts(unit) if spread and unit.account is None else ()
    if not names:
        yield unit
    for name in names:
        yield replace(unit, account=name, spread=True)
