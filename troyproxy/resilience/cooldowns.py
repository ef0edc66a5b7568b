"""Cooldowns: who is left alone until when, and how far the back-off of each has climbed.

A lock belongs to a key: one account for one model, one account for every model (``model = "*"``), or one model of a
provider for every account (``account = "*"``, a *bench*). Hard and soft locks of one pair have keys of their own,
because the later ``until`` wins: were they one entry, a short soft lock could turn a hard one soft before its time.

Rules:

- A failure never shortens a lock: of the old and the new ``until`` the later stays.
- The back-off level is a property of the hard key. It climbs by one for each `rate` failure whose attempt **began
  after the last lock was set**; twenty concurrent requests that meet one limit are one discovery, not twenty.
- A success removes what has expired on its keys and resets their levels; it shortens nothing.
- A clearing lifts what was set before it, whenever it is heard of: a lock set after it stays.
- A lock set elsewhere is merged by the later ``until``; the level stays our own.
- A level is remembered for an hour after its lock ended; then the key starts from the bottom, and the entry and the
  journal rows behind it may be dropped.

This module knows nothing of breakers, policies or vendors, and draws no random numbers of its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from troyproxy.resilience.classes import RULES, ErrorClass, Scope
from troyproxy.resilience.events import Cleared, Failed, Locked, Succeeded
from troyproxy.resilience.verdict import Verdict

ANY: Final = "*"
MAX_LEVEL: Final = 15
BASE_S: Final = 2.0
MAX_BACKOFF_S: Final = 300.0
JITTER: Final = 0.1
LEVEL_MEMORY_S: Final = 3600.0
"""How long a level outlives its lock, in seconds."""


class LockKey(NamedTuple):
    """What a lock holds: see the module's first paragraph for ``*``."""

    provider: str
    account: str
    model: str
    soft: bool


@dataclass(frozen=True, slots=True)
class Cooldown:
    """A lock: *until* and *at* (when it was set) in unix seconds. *level* is 0 for locks without back-off."""

    until: float
    soft: bool
    level: int
    error_class: ErrorClass
    at: float


Locks = Mapping[LockKey, Cooldown]


def backoff_s(verdict: Verdict, level: int, rng: random.Random, *, max_s: float = MAX_BACKOFF_S) -> float | None:
    """Return how long to leave the target alone, in seconds; None when the class does not cool.

    A hint wins as it is (`retry_hint` capped it); flat classes wait their table's time; `rate` waits 2 s doubled
    per level above 1, with *level* at most 15, at most *max_s*. Jitter, where the table asks for it, is ±10 %.
    """
    rule = RULES[verdict.error_class]
    if not rule.cools:
        return None
    if verdict.hint_s is not None:
        return verdict.hint_s
    wait_s = verdict.cooldown_s
    if wait_s is None:
        wait_s = min(BASE_S * 2 ** (min(max(level, 1), MAX_LEVEL) - 1), max_s)
    if rule.jitter:
        wait_s *= rng.uniform(1 - JITTER, 1 + JITTER)
    return min(wait_s, max_s) if rule.exponential else wait_s


def key_of(scope: Scope, provider: str, account: str, model: str, *, soft: bool) -> LockKey:
    """Return the key that a failure with *scope* locks."""
    match scope:
        case Scope.ACCOUNT:
            return LockKey(provider, account, ANY, soft)
        case Scope.MODEL:
            return LockKey(provider, ANY, model, soft)
        case _:
            return LockKey(provider, account, model, soft)


def keys_over(provider: str, account: str, model: str) -> Iterator[LockKey]:
    """Yield each key whose lock covers this pair, the hard ones first."""
    for soft in (False, True):
        yield LockKey(provider, account, model, soft)
        yield LockKey(provider, account, ANY, soft)
        yield LockKey(provider, ANY, model, soft)


def level_of(locks: Locks, key: LockKey, now: float) -> int:
    """Return the back-off level that *key* still remembers at *now*."""
    lock = locks.get(key)
    return lock.level if lock and now <= lock.until + LEVEL_MEMORY_S else 0


def next_level(locks: Locks, key: LockKey, *, at: float, started_at: float) -> int:
    """Return the level a `rate` failure at *at* reaches; the attempt began at *started_at*."""
    level = level_of(locks, key, at)
    if level and started_at < locks[key].at:
        return level
    return min(level + 1, MAX_LEVEL)


def after_failure(locks: Locks, event: Failed) -> Locks:
    """Return *locks* with the lock that *event* sets; the same object when it sets none."""
    if event.cooldown_s is None or event.scope is Scope.NONE:
        return locks
    key = key_of(event.scope, event.provider, event.account, event.model, soft=event.soft)
    lock = Cooldown(event.at + event.cooldown_s, event.soft, event.level, event.error_class, event.at)
    old = locks.get(key)
    if old is not None and old.until > lock.until:
        lock = replace(old, level=max(event.level, level_of(locks, key, event.at)))
    return locks if lock == old else {**locks, key: lock}


def after_locking(locks: Locks, event: Locked) -> Locks:
    """Return *locks* with a lock set elsewhere; the same object when ours ends later. In any order."""
    key = LockKey(event.provider, event.account, event.model, event.soft)
    lock = Cooldown(event.until, event.soft, level_of(locks, key, event.at), event.error_class, event.at)
    old = locks.get(key)
    return locks if old is not None and _rank(old) >= _rank(lock) else {**locks, key: lock}


def _rank(lock: Cooldown) -> tuple[float, float, str]:
    return (lock.until, lock.at, lock.error_class)


def after_success(locks: Locks, event: Succeeded) -> Locks:
    """Return *locks* without what had expired on the keys of this pair, their levels at 0."""
    changed: dict[LockKey, Cooldown | None] = {}
    for key in keys_over(event.provider, event.account, event.model) if locks else ():
        lock = locks.get(key)
        if lock is None:
            continue
        if lock.until <= event.at:
            changed[key] = None
        elif lock.level:
            changed[key] = replace(lock, level=0)
    if not changed:
        return locks
    merged: dict[LockKey, Cooldown | None] = {**locks, **changed}
    return {key: lock for key, lock in merged.items() if lock is not None}


def after_clearing(locks: Locks, event: Cleared) -> Locks:
    """Return *locks* without those that *event* matches, but for what was set after it."""
    kept = {
        key: lock
        for key, lock in locks.items()
        if lock.at > event.at or not clears(event, key.provider, key.account, key.model)
    }
    return locks if len(kept) == len(locks) else kept


def clears(event: Cleared, provider: str, account: str, model: str) -> bool:
    """Whether each thing *event* names is equal; what it leaves None matches all."""
    asked = ((event.provider, provider), (event.account, account), (event.model, model))
    return all(want is None or want == have for want, have in asked)


def longest(locks: Locks, provider: str, account: str, model: str, now: float) -> Cooldown | None:
    """Return the lock that holds this pair at *now*: the longest hard one, else the longest soft one."""
    if not locks:
        return None
    found = [lock for key in keys_over(provider, account, model) if (lock := locks.get(key)) and lock.until > now]
    return max(found, key=lambda lock: (not lock.soft, lock.until), default=None)


def pruned(locks: Locks, now: float) -> Locks:
    """Return *locks* without expired ones whose level is gone or no longer remembered."""
    kept = {key: lock for key, lock in locks.items() if lock.until > now or level_of(locks, key, now)}
    return locks if len(kept) == len(locks) else kept
