"""The health of every target: cooldowns and circuits in one frozen value, and the one `apply` that changes it.

Which events there are to apply, live, is worked out in ``decide.py``; a replay only folds. `apply` is total: an event
that does not fit the state changes nothing, and then the same object comes back.

The tables are bounded: model names may come from clients, so at the bound the entries that matter least are dropped
(locks that end first; closed circuits before open ones, idle ones first).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final, NamedTuple, TypeVar

from troyproxy.resilience import breaker as circuit
from troyproxy.resilience import cooldowns as locks
from troyproxy.resilience.breaker import (
    DEFAULT_POLICY,
    FRESH,
    Admission,
    Breaker,
    BreakerPolicy,
    CircuitState,
    Outcome,
)
from troyproxy.resilience.classes import RULES, ErrorClass
from troyproxy.resilience.cooldowns import Cooldown, LockKey
from troyproxy.resilience.events import (
    CircuitClosed,
    CircuitEvent,
    CircuitHalfOpened,
    CircuitOpened,
    Cleared,
    Event,
    Failed,
    Locked,
    ProbeLeased,
    Succeeded,
)

K = TypeVar("K")
V = TypeVar("V")

FORGET_S: Final = locks.LEVEL_MEMORY_S
"""How long after its end, in seconds, a lock's level or an unprobed circuit is remembered."""


class CircuitKey(NamedTuple):
    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class HealthPolicy:
    """What `apply` needs to know. *max_entries* bounds each of the two tables."""

    breaker: BreakerPolicy = DEFAULT_POLICY
    max_entries: int = 4096


@dataclass(frozen=True, slots=True)
class Health:
    """The whole state; never changed in place."""

    cooldowns: Mapping[LockKey, Cooldown]
    breakers: Mapping[CircuitKey, Breaker]

    def has_level(self, provider: str, account: str, model: str) -> bool:
        """Whether a success of this pair would clear a back-off level."""
        keys = locks.keys_over(provider, account, model) if self.cooldowns else ()
        return any((lock := self.cooldowns.get(key)) and lock.level for key in keys)


EMPTY: Final = Health({}, {})


@dataclass(frozen=True, slots=True)
class CooldownStatus:
    """A lock in force; ``*`` as *account* or *model* means all of them."""

    provider: str
    account: str
    model: str
    error_class: ErrorClass
    until: float
    soft: bool


@dataclass(frozen=True, slots=True)
class CircuitStatus:
    """A circuit; *until* is when a denied call may be asked for again, None when none is denied."""

    provider: str
    model: str
    state: CircuitState
    until: float | None


def apply(health: Health, event: Event, policy: HealthPolicy) -> Health:
    """Return *health* after *event*. Total and pure; the same for live events and for replayed ones."""
    match event:
        case Failed():
            cooled = locks.after_failure(health.cooldowns, event)
            return _with_outcome(_with_locks(health, cooled, policy), event, policy)
        case Succeeded():
            return _with_outcome(
                _with_locks(health, locks.after_success(health.cooldowns, event), policy), event, policy
            )
        case Cleared():
            return _with_locks(_reset(health, event), locks.after_clearing(health.cooldowns, event), policy)
        case Locked():
            return _with_locks(health, locks.after_locking(health.cooldowns, event), policy)
        case _:
            return _with_breaker(health, event, _turned(breaker_of(health, event.provider, event.model), event), policy)


def tallied(health: Health, provider: str, model: str, count: int, *, at: float, policy: HealthPolicy) -> Health:
    """Return *health* after *count* successes of a closed circuit in one slice of its window, the latest at *at*.

    The same as `apply` of each where there is no lock on their keys; see ``tallies.py``.
    """
    key = CircuitKey(provider, model)
    after = circuit.counted(health.breakers.get(key, FRESH), Outcome.SUCCESS, at, policy.breaker, times=count)
    return replace(health, breakers=_bounded({**health.breakers, key: after}, policy.max_entries, _weight))


def fold(events: Iterable[Event], policy: HealthPolicy, health: Health = EMPTY) -> Health:
    """Return *health* after the journalled *events*, oldest first."""
    return reduce(lambda state, event: apply(state, event, policy), events, health)


def prune(health: Health, now: float, policy: HealthPolicy) -> Health:
    """Return *health* without what no longer has an effect at *now*."""
    kept = {key: value for key, value in health.breakers.items() if not _forgotten(value, now, policy.breaker)}
    return _with_locks(
        health if len(kept) == len(health.breakers) else replace(health, breakers=kept),
        locks.pruned(health.cooldowns, now),
        policy,
    )


def journal_horizon_s(policy: HealthPolicy, cap_s: float) -> float:
    """Return the age, in seconds, past which a journal row has no effect any more; *cap_s* caps retry hints."""
    longest_s = max(cap_s, locks.MAX_BACKOFF_S, *(rule.cooldown_s or 0 for rule in RULES.values()))
    return max(longest_s, policy.breaker.max_open_s, policy.breaker.window_s) + FORGET_S


def admission(health: Health, provider: str, model: str, now: float) -> Admission:
    """Return whether a call may start; before a `PROBE` the caller records `ProbeLeased`, without awaiting between."""
    return circuit.admission(breaker_of(health, provider, model), now)


def circuit_until(health: Health, provider: str, model: str, now: float) -> float | None:
    """Return when a denied circuit may be asked again; None when it is not denied."""
    return circuit.denied_until(breaker_of(health, provider, model), now)


def circuit_state(health: Health, provider: str, model: str, now: float) -> CircuitState:
    """Return the state of one circuit at *now*; an unknown one is closed."""
    return circuit.state_at(breaker_of(health, provider, model), now)


def transition_of(before: Health, event: Event) -> tuple[CircuitState, CircuitState] | None:
    """Return from which state to which *event* takes its circuit, for the metrics; None for other events.

    Comparing the states before and after would miss open → half-open, since time alone brings that about.
    """
    match event:
        case CircuitHalfOpened():
            return CircuitState.OPEN, CircuitState.HALF_OPEN
        case CircuitOpened() | CircuitClosed():
            new = CircuitState.OPEN if isinstance(event, CircuitOpened) else CircuitState.CLOSED
            return circuit_state(before, event.provider, event.model, event.at), new
        case _:
            return None


def cooldown_of(health: Health, provider: str, account: str, model: str, now: float) -> Cooldown | None:
    """Return the lock that holds this pair: the longest hard one over it, else the longest soft one."""
    return locks.longest(health.cooldowns, provider, account, model, now)


def eligible_at(health: Health, provider: str, account: str, model: str, now: float) -> float:
    """Return the earliest moment a call may start, *now* if at once. Soft locks do not bar it: see the second pass."""
    lock = cooldown_of(health, provider, account, model, now)
    hard_until = lock.until if lock and not lock.soft else now
    return max(hard_until, circuit_until(health, provider, model, now) or now)


def cooldowns(health: Health, now: float) -> list[CooldownStatus]:
    """Return the locks in force at *now*."""
    return [
        CooldownStatus(key.provider, key.account, key.model, lock.error_class, lock.until, lock.soft)
        for key, lock in health.cooldowns.items()
        if lock.until > now
    ]


def circuits(health: Health, now: float) -> list[CircuitStatus]:
    """Return every circuit that has been used lately, with its state at *now*."""
    return [
        CircuitStatus(key.provider, key.model, circuit.state_at(value, now), circuit.denied_until(value, now))
        for key, value in health.breakers.items()
    ]


def breaker_of(health: Health, provider: str, model: str) -> Breaker:
    """Return the circuit of a target; a closed, empty one when it is unknown."""
    return health.breakers.get(CircuitKey(provider, model), FRESH)


def lifts(event: Cleared, key: CircuitKey, value: Breaker = FRESH) -> bool:
    """Whether *event* resets this circuit too: not when it names an account, nor when the circuit opened after it."""
    older = value.opened_at is None or value.opened_at <= event.at
    return older and event.account is None and locks.clears(event, key.provider, locks.ANY, key.model)


def _reset(health: Health, event: Cleared) -> Health:
    """Return *health* without the circuits that *event* resets, but for what they have counted after it.

    Whenever it is heard of, and however often. The slice of its own moment is not split: it stays when it has gone on.
    """
    kept: dict[CircuitKey, Breaker] = {}
    for key, value in health.breakers.items():
        later = tuple(bucket for bucket in value.window if bucket.last > event.at)
        if not lifts(event, key, value) or (later and later == value.window):
            kept[key] = value
        elif later:
            kept[key] = replace(value, window=later)
    return health if kept == health.breakers else replace(health, breakers=kept)


def outcome_of(event: Failed | Succeeded) -> Outcome:
    """Return what *event* is to the breaker."""
    if isinstance(event, Succeeded):
        return Outcome.SUCCESS
    return Outcome.FAILURE if event.counts else Outcome.NEUTRAL


def _with_outcome(health: Health, event: Failed | Succeeded, policy: HealthPolicy) -> Health:
    before = breaker_of(health, event.provider, event.model)
    after = circuit.after_outcome(
        before, outcome_of(event), at=event.at, started_at=event.started_at, policy=policy.breaker
    )
    return _with_breaker(health, event, after, policy)


def _turned(before: Breaker, event: CircuitEvent) -> Breaker:
    match event:
        case CircuitOpened():
            return circuit.opened(before, at=event.at, until=event.until, open_s=event.open_s)
        case CircuitHalfOpened():
            return circuit.half_opened(before, event.at)
        case CircuitClosed():
            return circuit.closed(before, event.at)
        case ProbeLeased():
            return circuit.leased(before, at=event.at, until=event.until)
        case _:
            return circuit.returned(before, event.started_at)


def _with_breaker(
    health: Health, event: Failed | Succeeded | CircuitEvent, after: Breaker, policy: HealthPolicy
) -> Health:
    key = CircuitKey(event.provider, event.model)
    if after is health.breakers.get(key, FRESH):
        return health
    return replace(health, breakers=_bounded({**health.breakers, key: after}, policy.max_entries, _weight))


def _with_locks(health: Health, after: Mapping[LockKey, Cooldown], policy: HealthPolicy) -> Health:
    if after is health.cooldowns:
        return health
    return replace(health, cooldowns=_bounded(after, policy.max_entries, lambda lock: (lock.until, 0.0)))


def _weight(value: Breaker) -> tuple[float, float]:
    return (value.stored is not CircuitState.CLOSED, value.window[-1].last if value.window else value.until)


def _bounded(table: Mapping[K, V], limit: int, weight: Callable[[V], tuple[float, float]]) -> Mapping[K, V]:
    """Return *table*, or when it is over *limit* its heavier part: an eighth goes at once, so that this is rare."""
    if len(table) <= limit:
        return table
    heaviest = sorted(table.items(), key=lambda entry: weight(entry[1]), reverse=True)
    return dict(heaviest[: limit - limit // 8])


def _forgotten(value: Breaker, now: float, policy: BreakerPolicy) -> bool:
    if value.stored is not CircuitState.CLOSED:
        return now > value.until + FORGET_S and circuit.admission(value, now) is not Admission.DENY
    latest = max(value.window[-1].last if value.window else now - policy.window_s, value.opened_at or 0.0)
    return latest <= now - policy.window_s
