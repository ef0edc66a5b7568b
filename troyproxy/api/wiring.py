"""What a caller may put in place of the parts that `troyproxy.app` would choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random, SystemRandom
from typing import Final

from troyproxy.api.gateway import ASGIApp
from troyproxy.catalog.keys import Key
from troyproxy.ports import Clock, Observer, SharedAttempts, SharedLimits, StateMirror, Store, Upstream
from troyproxy.proxy.clock import SystemClock

ALONE: Final = "main"
"""The name of a process that has no others beside it."""


@dataclass(slots=True, kw_only=True)
class Wiring:
    """What a caller may put in place of the real thing; tests do, and hosts that bring their own."""

    clock: Clock = field(default_factory=SystemClock)
    rng: Random = field(default_factory=SystemRandom)
    upstream: Upstream | None = None
    store: Store | None = None
    mirror: StateMirror | None = None
    limits: SharedLimits | None = None
    attempts: SharedAttempts | None = None
    observers: tuple[Observer, ...] = ()
    apps: Mapping[str, ASGIApp] = field(default_factory=dict)
    """In-process upstreams by name, besides the demo provider."""
    demo: bool = False
    """Serve the demo provider and its combo too."""
    keys: tuple[Key, ...] = ()
    """Client keys that are accepted besides those of the file and the database."""
    worker: str = ALONE
    """Which of several workers this process is."""
    metrics_folder: Path | None = None
    """Where several workers count together; `telemetry.workers.join` was called with it."""
