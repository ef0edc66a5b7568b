"""From what happened to the events to record: the live half of the fold in ``health.py``.

The whole protocol of a recorder, with no await between its lines::

    for event in decide(health, failure_event(health, verdict, attempt, at=now, rng=rng), policy):
        if is_journalled(health, event):
            log.append(event)
        health = apply(health, event, policy)

A replay calls only `health.fold`; why it must not decide is argued in ``breaker.py``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from troyproxy.resilience import breaker as circuit
from troyproxy.resilience import cooldowns as locks
from troyproxy.resilience.breaker import CircuitState, Signal
from troyproxy.resilience.classes import RULES, BreakerEffect
from troyproxy.resilience.events import (
    CircuitClosed,
    CircuitHalfOpened,
    CircuitOpened,
    Cleared,
    Event,
    Failed,
    ProbeLeased,
    Succeeded,
)
from troyproxy.resilience.health import Health, HealthPolicy, breaker_of, lifts, outcome_of
from troyproxy.resilience.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call to one target, begun at *started_at* (unix seconds)."""

    provider: str
    model: str
    account: str
    started_at: float


def failure_event(health: Health, verdict: Verdict, attempt: Attempt, *, at: float, rng: random.Random) -> Failed:
    """Return the event of a failed *attempt*, its cooldown and back-off level worked out. *rng* draws the jitter."""
    rule = RULES[verdict.error_class]
    key = locks.key_of(verdict.scope, attempt.provider, attempt.account, attempt.model, soft=verdict.soft)
    if rule.exponential:
        level = locks.next_level(health.cooldowns, key, at=at, started_at=attempt.started_at)
    else:
        level = locks.level_of(health.cooldowns, key, at)
    return Failed(
        at=at,
        provider=attempt.provider,
        model=attempt.model,
        account=attempt.account,
        error_class=verdict.error_class,
        hint_s=verdict.hint_s,
        cooldown_s=locks.backoff_s(verdict, level, rng),
        soft=verdict.soft,
        scope=verdict.scope,
        started_at=attempt.started_at,
        level=level,
        counts=verdict.breaker is BreakerEffect.FAILURE,
    )


def decide(health: Health, event: Event, policy: HealthPolicy) -> tuple[Event, ...]:
    """Return *event* with the circuit events that follow from it, in the order to journal and apply them."""
    match event:
        case Failed() | Succeeded():
            return (event, *_circuit_follows(health, event, policy))
        case ProbeLeased(at, provider, model):
            before = breaker_of(health, provider, model)
            if before.stored is not circuit.step(before, Signal.WAIT_OVER, at):
                return (CircuitHalfOpened(at, provider, model), event)
            return (event,)
        case Cleared(at):
            turned = [(key, value) for key, value in health.breakers.items() if value.stored is not CircuitState.CLOSED]
            matched = [key for key, value in turned if lifts(event, key, value)]
            return (*(CircuitClosed(at, *key) for key in matched), event)
        case _:
            return (event,)


def _circuit_follows(health: Health, event: Failed | Succeeded, policy: HealthPolicy) -> tuple[Event, ...]:
    before = breaker_of(health, event.provider, event.model)
    signal = circuit.signal_of(
        before, outcome_of(event), at=event.at, started_at=event.started_at, policy=policy.breaker
    )
    after = circuit.step(before, signal, event.at)
    if after is circuit.state_at(before, event.at):
        return ()
    if after is CircuitState.CLOSED:
        return (CircuitClosed(event.at, event.provider, event.model),)
    open_s = circuit.next_open_s(before, event.at, policy.breaker)
    return (CircuitOpened(event.at, event.provider, event.model, event.at + open_s, open_s),)
