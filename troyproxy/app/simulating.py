"""Makes the parts that a simulation walks by: those of live traffic, without database, upstreams or metrics."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from troyproxy.app.scoring import auto_engine
from troyproxy.ports import Clock
from troyproxy.proxy.accounts import AccountDesk
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.learned import LearnedParameters
from troyproxy.proxy.measuring import Measuring
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.policy import WalkPolicy, health_policy
from troyproxy.proxy.replay.simulation import NoJournal, NoUpstream, Policy
from troyproxy.proxy.retries import Retries
from troyproxy.resilience.retry_budget import RetryPolicy
from troyproxy.settings.assemble import assemble
from troyproxy.settings.load import Configuration
from troyproxy.telemetry.silent import Silent


def simulated(name: str, configuration: Configuration, clock: Clock, *, now: float) -> Policy:
    """Return the policy *name* that *configuration* describes, at *now* (unix seconds). Raises ConfigError."""
    settings, observer = configuration.settings, Silent()
    # Nobody waits at the other end, so nobody is kept waiting with comments.
    policy = replace(WalkPolicy.of(settings), early_commit_s=0.0, keepalive_s=0.0)
    health = HealthKeeper(
        clock=clock,
        log=NoJournal(),
        observer=observer,
        policy=health_policy(settings),
        rng=Random(0),  # noqa: S311
    )
    measuring = Measuring(health=health, clock=clock)
    auto = auto_engine(measuring, clock, observer, exploration=settings.auto_exploration)
    gear = Gear(
        upstream=NoUpstream(),
        health=health,
        desk=AccountDesk(max_inflight=policy.max_inflight, observer=observer),
        learned=LearnedParameters(clock),
        retries=Retries(clock, RetryPolicy(policy.retry_budget)),
        measuring=measuring,
        auto=auto,
        observer=observer,
        clock=clock,
        policy=policy,
    )
    planner = Planner(
        health=health,
        measuring=measuring,
        auto=auto,
        clock=clock,
        policy=policy,
        observer=observer,
        drifting=gear.leak_rates.late,
    )
    return Policy(name, assemble(configuration, now=now), gear, planner)
