"""One gateway's state with a way to others in memory, and waiting in virtual time, for the tests of mirroring."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from random import Random

from tests.fake_store import FakeControl
from tests.fakes import FakeEventLog, FakeObserver, FakeStateMirror
from tests.proxy.rig import ALPHA, snapshot
from tests.virtual import LoopClock
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.mirroring import Mirroring, Pace
from troyproxy.proxy.outcome import Target
from troyproxy.proxy.snapshots import SnapshotKeeper
from troyproxy.resilience.breaker import BreakerPolicy, CircuitState
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.classify import Verdict
from troyproxy.resilience.health import HealthPolicy
from troyproxy.routing.members import candidate_of

ACCOUNT = ALPHA.accounts[0].id
NEWS_ONLY = Pace(read_s=1e6)
KEEP_S = 5400.0


class Instance:
    """One gateway's state and its way to the others."""

    def __init__(
        self, beside: Instance | None = None, pace: Pace = NEWS_ONLY, policy: HealthPolicy | None = None
    ) -> None:
        self.clock, self.log, self.observer = LoopClock(), FakeEventLog(), FakeObserver()
        self.control: FakeControl = FakeControl() if beside is None else beside.control
        self.mirror: FakeStateMirror = FakeStateMirror(None if beside is None else beside.mirror)
        self.health = HealthKeeper(
            clock=self.clock,
            log=self.log,
            observer=self.observer,
            policy=policy or HealthPolicy(breaker=BreakerPolicy(failures=1)),
            rng=Random(7),
        )
        self.snapshots = SnapshotKeeper(self._build, control=self.control, clock=self.clock, on_change=())
        self.mirroring = Mirroring(
            self.mirror, health=self.health, snapshots=self.snapshots, clock=self.clock, keep_s=KEEP_S, pace=pace
        )

    async def _build(self, revision: int) -> Snapshot:
        return replace(snapshot(ALPHA), revision=revision, loaded_at=self.clock.now())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Instance]:
        await self.snapshots.reload(await self.control.revision())
        await self.mirroring.join()
        task = asyncio.get_running_loop().create_task(self.mirroring.follow())
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await self.mirroring.leave()

    def fail(self, hint_s: float | None = 60.0, error_class: ErrorClass = ErrorClass.RATE, model: str = "m1") -> None:
        self.health.failed(self.target(model), Verdict.of(error_class, "reason", hint_s=hint_s))

    def target(self, model: str = "m1") -> Target:
        return Target(candidate_of(ALPHA, model), ALPHA, ALPHA.accounts[0], self.clock.now(), limit_s=10.0)

    def until(self, model: str = "m1") -> float | None:
        """Return when the lock of the pair ends, None without one."""
        lock = self.health.cooldown("alpha", ACCOUNT, model)
        return None if lock is None else lock.until

    def circuit(self) -> CircuitState:
        return self.health.circuit("alpha", "m1")


async def eventually(look: Callable[[], object], *, within_s: float = 1.0) -> None:
    """Wait in virtual time until *look* is true; a second is what is promised."""
    async with asyncio.timeout(within_s):
        while not look():  # noqa: ASYNC110 -- in virtual time, and what is looked at has no event
            await asyncio.sleep(0.01)
