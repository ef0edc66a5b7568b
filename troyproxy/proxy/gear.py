"""What the walk works with, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field

from troyproxy.leaks.leak_rate import LeakRates
from troyproxy.ports import Clock, Observer, Upstream
from troyproxy.proxy.accounts import AccountDesk
from troyproxy.proxy.auto_engine import AutoEngine
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.learned import LearnedParameters
from troyproxy.proxy.measuring import Measuring
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.proxy.retries import Retries
from troyproxy.wire.heads import Heads


@dataclass(frozen=True, slots=True)
class Gear:
    """Everything that the walk works with; made once, in `troyproxy.app`."""

    upstream: Upstream
    health: HealthKeeper
    desk: AccountDesk
    learned: LearnedParameters
    retries: Retries
    measuring: Measuring
    auto: AutoEngine
    observer: Observer
    clock: Clock
    policy: WalkPolicy
    heads: Heads = field(default_factory=Heads)
    """What goes to every account in every request."""
    leak_rates: LeakRates = field(default_factory=LeakRates)
    """Which models drift: the walk writes, planning reads."""
