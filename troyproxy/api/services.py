"""What the admin API works with, as one value; made in `troyproxy.app`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from troyproxy.api.status import Status
from troyproxy.catalog.secret import Secret
from troyproxy.ports import Clock, Store
from troyproxy.proxy.catalogue_refresh import CatalogueRefresh
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.learned import LearnedParameters
from troyproxy.proxy.orders import Orders
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.quota_page import QuotaPage
from troyproxy.proxy.snapshots import SnapshotKeeper
from troyproxy.proxy.trials import Trials
from troyproxy.settings.load import Configuration
from troyproxy.telemetry.live import Live
from troyproxy.telemetry.ring import RequestRing


@dataclass(frozen=True, slots=True)
class Services:
    """The parts behind ``/api``."""

    store: Store
    snapshots: SnapshotKeeper
    health: HealthKeeper
    planner: Planner
    learned: LearnedParameters
    orders: Orders
    status: Status
    ring: RequestRing
    clock: Clock
    configuration: Configuration
    """As it was at the start: the settings in force, and the path of the file."""
    admin_token: Secret
    worker: str
    """The name of this process among several."""
    trials: Trials
    quota: QuotaPage
    live: Live
    stopping: Callable[[], bool]
    """Whether this process is about to stop."""
    forget_keys: Callable[[], None]
    """Client keys were written: look them up anew."""
    catalogue: CatalogueRefresh | None = None
    """None: the model catalogue is that of the package."""
