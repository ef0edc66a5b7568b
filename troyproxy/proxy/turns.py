"""What an attempt's outcome did to the health state, said in the play-by-play: locks set and lifted, circuits turned.

Looked at only while the play-by-play is printed (``TROY_TRACE=1``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product

from troyproxy.proxy.call import Call
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.memory import account_name
from troyproxy.proxy.outcome import Target
from troyproxy.resilience.cooldowns import ANY, Cooldown, LockKey


@contextmanager
def turns_told(gear: Gear, call: Call, target: Target) -> Iterator[None]:
    """Say what is done to *target* within."""
    if not gear.policy.trace:
        yield
        return
    provider, model = target.provider.id, target.candidate.model
    locks, circuit = _locks(gear, target), gear.health.circuit(provider, model)
    yield
    for line in _changes(locks, _locks(gear, target), gear.clock.now()):
        call.ledger.say(line)
    turned = gear.health.circuit(provider, model)
    if turned is not circuit:
        call.ledger.say(f"  circuit {provider}/{model}: {circuit} -> {turned}")


def _locks(gear: Gear, target: Target) -> Mapping[LockKey, Cooldown]:
    """Return the locks that touch *target*."""
    pairs = product((target.account.id, ANY), (target.candidate.model, ANY), (False, True))
    keys = (LockKey(target.provider.id, account, model, soft) for account, model, soft in pairs)
    return {key: gear.health.state.cooldowns[key] for key in keys if key in gear.health.state.cooldowns}


def _changes(before: Mapping[LockKey, Cooldown], after: Mapping[LockKey, Cooldown], now: float) -> Iterator[str]:
    for key, lock in after.items():
        if lock.until > now and (key not in before or before[key].until != lock.until):
            kind = "soft cooldown" if key.soft else "cooldown"
            yield f"  {kind} {_spelt(key)}: {lock.until - now:.3g} s ({lock.error_class})"
    for key in before.keys() - after.keys():
        yield f"  cleared {_spelt(key)}"


def _spelt(key: LockKey) -> str:
    return f"{key.provider}/{key.model} #{account_name(key.provider, key.account)}"
