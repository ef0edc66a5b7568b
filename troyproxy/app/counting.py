"""Makes the parts that keep the limits and budgets of client keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from troyproxy.api.wiring import Wiring
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.ports import Store
from troyproxy.proxy.life import Background
from troyproxy.proxy.limit_sharing import LimitSharing
from troyproxy.proxy.limited_keys import LimitedKeys
from troyproxy.proxy.limits import LimitKeeper
from troyproxy.proxy.spending import Spending
from troyproxy.settings.values import Settings
from troyproxy.store.redis_door import shared_limits


@dataclass(frozen=True, slots=True)
class Counting:
    """The keeper, and what feeds it."""

    keeper: LimitKeeper
    keys: LimitedKeys
    first: tuple[Background, ...]
    """To be done once before the first request."""
    background: tuple[Background, ...]

    @classmethod
    def of(cls, settings: Settings, wiring: Wiring, store: Store, snapshot: Callable[[], Snapshot]) -> Self:
        """Return the parts, connected to nothing yet. Raises ConfigError."""
        clock = wiring.clock
        shared = wiring.limits or shared_limits(settings.redis_url)
        sharing = None if shared is None else LimitSharing(shared, clock=clock)
        spending = Spending(store.sums, clock)
        keeper = LimitKeeper(clock=clock, sums=lambda: spending.latest, sharing=sharing)
        keys = LimitedKeys(keeper, store.keys, snapshot, clock)
        if sharing is None:
            return cls(keeper, keys, (spending.read,), (spending.follow, keys.follow))
        return cls(keeper, keys, (spending.read, sharing.join), (spending.follow, keys.follow, sharing.follow))
