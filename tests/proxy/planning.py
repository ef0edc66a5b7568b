"""A planner on a clock that the test moves, and the health behind it."""

from __future__ import annotations

from random import Random

import pytest

from tests.fakes import FakeClock, FakeEventLog, FakeObserver
from troyproxy.app.scoring import auto_engine
from troyproxy.catalog.providers import Provider
from troyproxy.errors import (
    TroyError,
)
from troyproxy.proxy.call import Call
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.measuring import Measuring
from troyproxy.proxy.outcome import Target
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.classify import Verdict
from troyproxy.resilience.health import HealthPolicy
from troyproxy.routing.members import candidate_of

TOOL = {"type": "function", "function": {"name": "f"}}
IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]
AUDIO = [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}]}]


class Desk:
    """A planner on a clock that the test moves, and the health behind it."""

    def __init__(self, clock: FakeClock, *, deny_unknown: bool = False) -> None:
        self.clock, self.observer = clock, FakeObserver()
        self.health = HealthKeeper(
            clock=clock, log=FakeEventLog(), observer=self.observer, policy=HealthPolicy(), rng=Random(7)
        )
        policy = WalkPolicy(deny_unknown=deny_unknown)
        self.measuring = Measuring(health=self.health, clock=clock)
        self.auto = auto_engine(self.measuring, clock, self.observer, exploration=0.0)
        self.planner = Planner(
            health=self.health,
            measuring=self.measuring,
            auto=self.auto,
            clock=clock,
            policy=policy,
            observer=self.observer,
        )

    def fail(self, of: Provider, name: str, error_class: ErrorClass, hint_s: float | None = None) -> None:
        """Let every account of one model fail."""
        for account in of.accounts:
            target = Target(candidate_of(of, name), of, account, self.clock.now())
            self.health.failed(target, Verdict.of(error_class, "reason", hint_s=hint_s))
            self.clock.move(0.001)

    def refused(self, call: Call) -> TroyError:
        with pytest.raises(TroyError) as caught:
            self.planner.plan(call)
        return caught.value
