"""Where it went well last: the last known good target of a combo, and of a session in it.

Kept for each (client key, session, combo, weights), so that two keys never share one: sessions are client-chosen. A
success writes it, for 15 minutes from the latest one. It is gone for good when an attempt at that target fails, when
its circuit opens or a cooldown begins, when the combo is edited, and when the account is. All of these are *blows*:
what was good before the latest blow to it is not known to be good. Looking changes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from cachetools import LRUCache, TTLCache

from troyproxy.catalog.combos import Combo
from troyproxy.ports import Clock
from troyproxy.proxy.call import Call, MemoryKey
from troyproxy.resilience import cooldowns
from troyproxy.resilience.cooldowns import ANY
from troyproxy.resilience.events import CircuitOpened, Event, Failed, Locked
from troyproxy.routing.members import Group

SLIDING_S: Final = 900.0
BOUND: Final = 10_000
SESSION_FIELDS: Final = ("session_id", "conversation_id", "prompt_cache_key")


Place = tuple[str, str, str]
"""Provider, account and model; ``*`` as account or model means all of them."""


@dataclass(frozen=True, slots=True)
class GoodTarget:
    """One account of one model, by names; *order*: its place among all that happened."""

    provider: str
    model: str
    account: str
    order: int

    @property
    def identity(self) -> str:
        """The identity of a candidate that is pinned to the account."""
        return f"{self.provider}/{self.model}#{self.account}"


class TargetMemory:
    """The memory of this process; bounded, and forgetful by itself."""

    def __init__(self, clock: Clock) -> None:
        self._good: TTLCache[MemoryKey, GoodTarget] = TTLCache(BOUND, SLIDING_S, timer=clock.now)
        self._blows: LRUCache[Place, int] = LRUCache(BOUND)
        self._order = itertools.count()

    def last(self, key: MemoryKey) -> GoodTarget | None:
        """Return what is remembered."""
        found = self._good.get(key)
        if found is None or not self._blows:
            return found
        account, model = found.account, found.model
        places = ((account, model), (account, ANY), (ANY, model), (ANY, ANY))
        blows = (self._blows.get((found.provider, *place), -1) for place in places)
        return None if max(blows) > found.order else found

    def served(self, keys: Collection[MemoryKey], provider: str, model: str, account: str) -> None:
        """Remember a success under every one of *keys*."""
        if keys:
            target = GoodTarget(provider, model, account, next(self._order))
            self._good.update(dict.fromkeys(keys, target))

    def failed(self, provider: str, model: str, account: str) -> None:
        """An attempt failed: whoever remembers this target forgets it. ``*`` as *model* or *account* means all."""
        self._blows[provider, account, model] = next(self._order)

    def hear(self, event: Event) -> None:
        """Take note of what became of a target's health, here or on another instance."""
        match event:
            case CircuitOpened():
                self.failed(event.provider, event.model, ANY)
            case Locked():
                self.failed(event.provider, event.model, account_name(event.provider, event.account))
            case Failed() if event.cooldown_s is not None:
                lock = cooldowns.key_of(event.scope, event.provider, event.account, event.model, soft=event.soft)
                self.failed(lock.provider, lock.model, account_name(lock.provider, lock.account))
            case _:
                pass

    def forget_combo(self, combo_id: str) -> None:
        """Forget what was remembered of a combo that is another now."""
        for key in [key for key in self._good if key[2].startswith(f"{combo_id}@")]:
            del self._good[key]


def account_name(provider: str, account_id: str) -> str:
    """Return the name of an account by its id; ``*`` stays as it is."""
    name = account_id.removeprefix(f"{provider}#")
    return f"{provider}-keyless" if name == "keyless" else name


def identity_in(target: GoodTarget | None, group: Group) -> str | None:
    """Return the identity under which *target* is in *group*: pinned to its account or not."""
    if target is None:
        return None
    pinned = target.identity
    return pinned if _holds(group, pinned) else f"{target.provider}/{target.model}"


def _holds(group: Group, identity: str) -> bool:
    """Whether a member of *group* has this identity; asked of whole pools with every plan, so without generators."""
    for unit in group.units:  # noqa: SIM110 -- see above
        if unit.identity == identity or (unit.__class__ is Group and _holds(unit, identity)):
            return True
    return False


def session_of(call: Call) -> str | None:
    """Return the session that the client names: the header, else a field of the body or its metadata."""
    named = call.header(b"x-troy-session")
    if named:
        return named
    payload, metadata = call.payload, call.payload.get("metadata")
    for owner in (metadata, payload) if isinstance(metadata, dict) else (payload,):
        for field in SESSION_FIELDS:
            if field in owner and isinstance(value := owner[field], str) and value:
                return value
    return None


def key_of(call: Call, combo: Combo, weights: str = "") -> MemoryKey:
    """Return the key under which *combo* remembers for this caller. An edit of the combo is another edition."""
    caller, session = call.key.id if call.key is not None else "anonymous", session_of(call)
    # Instances tell each other of these keys; whoever chose the session may have put a name into it.
    told = "-" if session is None else blake2b(session.encode("utf-8", "replace"), digest_size=16).hexdigest()
    return caller, told, f"{combo.id}@{combo.created_at}.{combo.version}", weights
