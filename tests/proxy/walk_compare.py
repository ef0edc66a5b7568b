"""Where the gateway's state is not what the model says. What chance decides within bounds, the model takes over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.proxy.walk_model import MEMORY_S, Book
from tests.proxy.walk_things import Circuit, Key, Lock
from troyproxy.proxy.health import HealthKeeper
from troyproxy.resilience.cooldowns import Cooldown
from troyproxy.resilience.health import breaker_of

NEAR_S: Final = 1e-6
FORGOTTEN_S: Final = 3600.0
"""Circuits that nobody asks for so long after their wait are forgotten."""


def differences(book: Book, health: HealthKeeper, now: float) -> Iterator[str]:
    """Yield what is wrong at *now*."""
    locks = {Key(k.provider, k.account, k.model, not k.soft): lock for k, lock in health.state.cooldowns.items()}
    for key in locks.keys() | book.locks.keys():
        yield from _lock(key, book.locks.get(key), locks.get(key), now)
    for provider, model in {*book.circuits, *health.state.breakers}:
        yield from _circuit(book, health, provider, model, now)


def _lock(key: Key, mine: Lock | None, lock: Cooldown | None, now: float) -> Iterator[str]:
    until = lock.until if lock is not None and lock.until > now else now
    low, high = (max(mine.low, now), max(mine.high, now)) if mine is not None else (now, now)
    if not low - NEAR_S <= until <= high + NEAR_S:
        yield f"{key} at {now:.3f}: locked for {until - now:.3f} s, not for {low - now:.3f} to {high - now:.3f} s"
    if mine is not None and until > now:
        mine.low = mine.high = until
    level = lock.level if lock is not None and now <= lock.until + MEMORY_S else 0
    expected = mine.level if mine is not None and now <= mine.high + MEMORY_S else 0
    if level != expected:
        yield f"{key} at {now:.3f}: level {level}, not {expected}"


def _circuit(book: Book, health: HealthKeeper, provider: str, model: str, now: float) -> Iterator[str]:
    mine = book.circuits.setdefault((provider, model), Circuit())
    state, value = health.circuit(provider, model).value, breaker_of(health.state, provider, model)
    if mine.doubtful or (mine.until is not None and now > mine.until + FORGOTTEN_S):
        mine.adopt(state, value.until, value.open_s)
    if state != mine.state(now):
        yield f"{provider}/{model} at {now:.3f}: {state}, not {mine.state(now)}"
    elif state == "open" and mine.until != value.until:
        yield f"{provider}/{model} at {now:.3f}: open until {value.until:.3f}, not {mine.until:.3f}"
    expected = {"closed": "admit", "open": "deny"}.get(state, "probe" if mine.probe is None else "deny")
    admission = health.admission(provider, model).value
    if admission != expected:
        yield f"{provider}/{model} at {now:.3f}, {state}: {admission}, not {expected}"
