"""Where it went well last: the last known good target of a combo, and of a session in it.

Kept for each (client key, session, combo, weights), so that two keys never share one: sessions are client-chosen. A
success writes it, for 15 minutes from its last use. It is gone when an attempt at that target fails, when the combo is
edited, and when the account is; a circuit or cooldown hides it by the plan's own filters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache, TTLCache

from troyproxy.catalog.combos import Combo
from troyproxy.ports import Clock
from troyproxy.proxy.call import Call, MemoryKey
from troyproxy.routing.members import Group, leaves

SLIDING_S: Final = 900.0
BOUND: Final = 10_000
SESSION_FIELDS: Final = ("session_id", "conversation_id", "prompt_cache_key")
LONGEST_SESSION: Final = 200


@dataclass(frozen=True, slots=True)
class GoodTarget:
    """One account of one model, by names; *at*: when it last served, unix seconds."""

    provider: str
    model: str
    account: str
    at: float

    @property
    def identity(self) -> str:
        """The identity of a candidate that is pinned to the account."""
        return f"{self.provider}/{self.model}#{self.account}"


class TargetMemory:
    """The memory of this process; bounded, and forgetful by itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._good: TTLCache[MemoryKey, GoodTarget] = TTLCache(BOUND, SLIDING_S, timer=clock.now)
        self._failed: LRUCache[tuple[str, str, str], float] = LRUCache(BOUND)

    def last(self, key: MemoryKey) -> GoodTarget | None:
        """Return what is remembered; looking is using."""
        found = self._good.get(key)
        if found is None:
            return None
        if self._failed.get((found.provider, found.model, found.account), 0.0) >= found.at:
            del self._good[key]
            return None
        self._good[key] = found
        return found

    def served(self, keys: Collection[MemoryKey], provider: str, model: str, account: str) -> None:
        """Remember a success under every one of *keys*."""
        if not keys:
            return
        self._failed.pop((provider, model, account), None)
        target = GoodTarget(provider, model, account, self._clock.now())
        for key in keys:
            self._good[key] = target

    def failed(self, provider: str, model: str, account: str) -> None:
        """An attempt failed: whoever remembers this target forgets it."""
        self._failed[provider, model, account] = self._clock.now()


def identity_in(target: GoodTarget | None, group: Group) -> str | None:
    """Return the identity under which *target* is in *group*: pinned to its account or not."""
    if target is None:
        return None
    names = {leaf.identity for leaf in leaves(group)}
    return target.identity if target.identity in names else f"{target.provider}/{target.model}"


def session_of(call: Call) -> str | None:
    """Return the session that the client names: the header, else a field of the body or its metadata."""
    named = call.header(b"x-troy-session")
    if named:
        return named[:LONGEST_SESSION]
    metadata = call.payload.get("metadata")
    for owner in (metadata if isinstance(metadata, Mapping) else {}, call.payload):
        for field in SESSION_FIELDS:
            value = owner.get(field)
            if isinstance(value, str) and value:
                return value[:LONGEST_SESSION]
    return None


def key_of(call: Call, combo: Combo, weights: str = "") -> MemoryKey:
    """Return the key under which *combo* remembers for this caller. An edit of the combo is another edition."""
    caller = call.key.id if call.key is not None else "anonymous"
    return caller, session_of(call) or "-", f"{combo.id}@{combo.created_at}.{combo.version}", weights
