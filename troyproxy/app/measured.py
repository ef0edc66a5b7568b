"""Makes the parts that measure what strategies go by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from troyproxy.api.wiring import Wiring
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.ports import Store
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.life import Background
from troyproxy.proxy.measure_sharing import MeasureSharing
from troyproxy.proxy.measuring import Measuring
from troyproxy.proxy.recall import Recall
from troyproxy.settings.values import Settings
from troyproxy.store.redis_door import shared_attempts


@dataclass(frozen=True, slots=True)
class Measured:
    """What is measured, and what feeds it."""

    measuring: Measuring
    first: tuple[Background, ...]
    """To be done once before the first request."""
    background: tuple[Background, ...]

    @classmethod
    def of(
        cls, settings: Settings, wiring: Wiring, store: Store, health: HealthKeeper, snapshot: Callable[[], Snapshot]
    ) -> Self:
        """Return the parts, connected to nothing yet. Raises ConfigError."""
        measuring = Measuring(health=health, clock=wiring.clock)
        recall = Recall(measuring, store.requests, snapshot, wiring.clock)
        shared = wiring.attempts or shared_attempts(settings.redis_url)
        if shared is None:
            return cls(measuring, (recall.bring,), ())
        sharing = MeasureSharing(shared, measuring, wiring.clock)
        return cls(measuring, (sharing.join, recall.bring), (sharing.follow,))
