"""What instances tell each other about their targets, and what one takes from another. Pure; the wire is elsewhere.

Shared is the effect and not the evidence: locks in force, open circuits, an operator's clearings, and the news that a
probe has closed a circuit. Failures that were counted, successes, back-off levels and probes are each instance's own.

Merging is a join, so what is heard twice, late or in another order ends in the same state:

- of two locks or openings the later ``until`` stays; nobody shortens what another set;
- a clearing lifts what was set before it and nothing that was set after it, also when it is heard first;
- a closing counts where our own wait is over too.

That something is missing in what was heard says nothing: it lifts no lock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from troyproxy.resilience.breaker import CircuitState
from troyproxy.resilience.cooldowns import clears
from troyproxy.resilience.events import CircuitClosed, CircuitOpened, Cleared, Event, Locked
from troyproxy.resilience.health import CircuitKey, Health, breaker_of, lifts

FURTHEST_S: Final = 31 * 86_400.0
"""A lock that ends later than so many seconds from now is not believed: what can be configured is shorter."""
AHEAD_S: Final = 60.0
"""How far, in seconds, the clock of another instance may be ahead of ours before its clearings are not believed."""


def shared_of(health: Health, now: float) -> list[Locked | CircuitOpened]:
    """Return the locks in force and the open circuits at *now*, as others should hear of them."""
    locks: list[Locked | CircuitOpened] = [
        Locked(lock.at, key.provider, key.account, key.model, lock.until, lock.soft, lock.error_class)
        for key, lock in health.cooldowns.items()
        if lock.until > now
    ]
    return locks + [
        CircuitOpened(value.opened_at, key.provider, key.model, value.until, value.open_s)
        for key, value in health.breakers.items()
        if value.stored is CircuitState.OPEN and value.until > now and value.opened_at is not None
    ]


def takes(health: Health, event: Event, now: float) -> bool:
    """Whether *event*, heard from another instance, is one to apply here at *now*.

    Not taken: what has run out, what cannot be, and every event that is evidence.
    """
    match event:
        case Locked() | CircuitOpened():
            return now < event.until <= now + FURTHEST_S
        case CircuitClosed():
            ours = breaker_of(health, event.provider, event.model)
            return (
                ours.stored is not CircuitState.CLOSED and ours.until <= event.at and (ours.opened_at or 0) <= event.at
            )
        case Cleared():
            return event.at <= now + AHEAD_S
        case _:
            return False


def is_lifted(event: Event, clearings: Iterable[Cleared]) -> bool:
    """Whether one of *clearings* came after *event* and matches it."""
    return any(event.at <= each.at and _matches(each, event) for each in clearings)


def _matches(clearing: Cleared, event: Event) -> bool:
    match event:
        case Locked():
            return clears(clearing, event.provider, event.account, event.model)
        case CircuitOpened():
            return lifts(clearing, CircuitKey(event.provider, event.model))
        case _:
            return False


def clearing_moment(health: Health, now: float) -> float:
    """Return the time to write on a clearing made at *now*: late enough for all that is known.

    Another instance's clock may be a little ahead of ours; its locks are meant too.
    """
    set_at = [lock.at for lock in health.cooldowns.values()]
    opened_at = [value.opened_at for value in health.breakers.values() if value.opened_at is not None]
    return max([now, *set_at, *opened_at])
