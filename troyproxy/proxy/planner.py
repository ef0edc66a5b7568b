"""From a call to an ordered chain of targets, with a typed reason for everything that was left out.

The code that serves traffic is the code that explains: `Planner.draft` has no effect but its result, `Planner.plan`
also applies the strategies' effects (cursors move when a plan is made) and refuses when nobody is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Final

from cachetools import LRUCache

from troyproxy.errors import AllUnavailable, ContextExceeded, ModelNotAllowed, NoEligibleMember
from troyproxy.ports import Clock, Observer
from troyproxy.proxy.accounts import accounts_of
from troyproxy.proxy.call import Call
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.resilience.breaker import Admission
from troyproxy.resilience.classes import ErrorClass
from troyproxy.routing.eligibility import (
    Skip,
    SkipReason,
    embedding_model,
    model_name,
    room_needed,
    shortfall,
)
from troyproxy.routing.globs import allowed, pool_limited
from troyproxy.routing.members import Candidate, Group, leaves
from troyproxy.routing.names import Resolution
from troyproxy.routing.needs import Needs
from troyproxy.routing.order import Plan, order
from troyproxy.routing.resolvers import root_of
from troyproxy.routing.strategies import Cursor

CURSORS: Final = 10_000
LOCKED: Final = frozenset({SkipReason.CIRCUIT, SkipReason.COOLDOWN})


class Planner:
    """Plans calls against the live health state. Cursors are this process's own."""

    def __init__(self, *, health: HealthKeeper, clock: Clock, policy: WalkPolicy, observer: Observer) -> None:
        self._health, self._clock, self._policy, self._observer = health, clock, policy, observer
        self._cursors: LRUCache[str, Cursor] = LRUCache(CURSORS)

    def plan(self, call: Call) -> Plan:
        """Plan *call*, apply the effects, note the skips. Raises when no member is left, or the key may not."""
        root, plan = self.draft(call)
        for effect in plan.effects:
            self._cursors[effect.combo_id] = Cursor(at=effect.at, left=effect.left)
        for skip in plan.skipped:
            if call.ledger.skip(skip):
                self._observer.skipped(skip.provider, skip.reason)
        if not plan.candidates:
            raise self.unavailable(call, tuple(leaves(root)), plan.skipped)
        call.plan = plan
        return plan

    def draft(self, call: Call) -> tuple[Group, Plan]:
        """Return the members behind the call's name and the plan for them, touching nothing."""
        resolution, needs = _decided(call)
        root = self._root(call, resolution, needs)
        globs = _globs(call, resolution, root)
        vectors = embedding_model(root) if call.route == "/v1/embeddings" else None
        now = self._clock.now()

        def eligible(candidate: Candidate) -> SkipReason | None:
            if vectors is not None and model_name(candidate.model) != vectors:
                return SkipReason.EXCLUDED
            if globs and not allowed(globs, candidate.spec):
                return SkipReason.NOT_ALLOWED
            return shortfall(candidate, needs, deny_unknown=self._policy.deny_unknown) or self._locked(candidate, now)

        return root, order(root, eligible, self._cursors, Random(call.seed), now)  # noqa: S311 -- seeded, replayable

    @staticmethod
    def _root(call: Call, resolution: Resolution, needs: Needs) -> Group:
        """Return the tree of members."""
        return root_of(
            resolution,
            call.snapshot,
            wants_tools=needs.tools or call.header(b"x-troy-wants-tools") == "1",
            header_provider=call.header(b"x-troy-provider"),
            key_provider=call.key.provider if call.key is not None else None,
        )

    def _locked(self, candidate: Candidate, now: float) -> SkipReason | None:
        """Why no account of *candidate* may be called now. Soft locks do not bar: the second pass takes them."""
        provider = candidate.provider
        if provider is None:
            return SkipReason.UNKNOWN_PROVIDER
        accounts = accounts_of(provider, candidate.model, candidate.account, now)
        if not accounts:
            off = provider.accounts and not any(account.active for account in provider.accounts)
            return SkipReason.DISABLED if off else SkipReason.NO_ACCOUNT
        if self._health.admission(provider.id, candidate.model) is Admission.DENY:
            return SkipReason.CIRCUIT
        locks = [self._health.cooldown(provider.id, account.id, candidate.model) for account in accounts]
        return SkipReason.COOLDOWN if all(lock is not None and not lock.soft for lock in locks) else None

    def unavailable(self, call: Call, members: Iterable[Candidate], skips: Sequence[Skip]) -> NoEligibleMember:
        """Return the error for a call that nobody can serve, with the reasons."""
        details = [{"member": skip.spec, "reason": str(skip.reason)} for skip in skips]
        members = list(members)
        told = "; ".join(f"{skip.spec}: {self._reason(skip, members)}" for skip in skips[:20]) or "it has no members"
        name = call.resolution.canonical[:200] if call.resolution is not None else ""
        if skips and all(skip.reason is SkipReason.CONTEXT for skip in skips):
            return _too_long(call, members, details)
        locked = [skip for skip in skips if skip.reason in LOCKED]
        if not locked:
            return NoEligibleMember(f"no member of {name!r} can serve this request: {told}", details=details)
        candidates = [member for member in members if any(member.spec == skip.spec for skip in locked)]
        wait_s, limited = self._wait(candidates)
        message = f"every member of {name!r} is unavailable for now: {told}"
        return AllUnavailable(
            message, retry_after_s=max(1.0, wait_s), rate_limited=limited and len(locked) == len(skips), details=details
        )

    def _wait(self, candidates: Iterable[Candidate]) -> tuple[float, bool]:
        """Return the seconds until the first of *candidates* is eligible, and whether all wait for a rate limit."""
        waits: list[float] = []
        limited = True
        for pair in (pair for candidate in candidates for pair in self._pairs(candidate)):
            moment = self._health.eligible_at(*pair)
            waits.append(moment - self._clock.now())  # looked at last: "at once" must not become a wait
            lock = self._health.cooldown(*pair)
            limited = limited and lock is not None and lock.error_class is ErrorClass.RATE
        return min(waits, default=0.0), limited and bool(waits)

    def _reason(self, skip: Skip, members: Iterable[Candidate]) -> str:
        """Return the reason with the class of the failure behind a cooldown."""
        if skip.reason is not SkipReason.COOLDOWN:
            return str(skip.reason)
        pairs = (pair for member in members if member.spec == skip.spec for pair in self._pairs(member))
        locks = [lock for pair in pairs if (lock := self._health.cooldown(*pair)) is not None]
        return f"{skip.reason} ({min(locks, key=lambda lock: lock.until).error_class})" if locks else str(skip.reason)

    def _pairs(self, candidate: Candidate) -> Iterator[tuple[str, str, str]]:
        provider, model = candidate.provider, candidate.model
        if provider is not None:
            for account in accounts_of(provider, model, candidate.account, self._clock.now()):
                yield provider.id, account.id, model

    def members(self, call: Call) -> tuple[Candidate, ...]:
        """Return every member behind the call's name, eligible or not."""
        return tuple(leaves(self._root(call, *_decided(call))))

    def retry_in_s(self, call: Call) -> float | None:
        """Return when a new request would find somebody, in seconds; None when it would at once, or never."""
        plan = call.plan
        if plan is None:
            return None
        open_to_it = {candidate.spec for candidate in plan.candidates}
        open_to_it |= {skip.spec for skip in plan.skipped if skip.reason in LOCKED}
        wait_s, _ = self._wait(member for member in self.members(call) if member.spec in open_to_it)
        return wait_s if wait_s > 0 else None


def _decided(call: Call) -> tuple[Resolution, Needs]:
    if call.resolution is None or call.needs is None:
        raise RuntimeError("a call is planned after its name is resolved and its needs are read")
    return call.resolution, call.needs


def _globs(call: Call, resolution: Resolution, root: Group) -> tuple[str, ...]:
    """Return the globs that limit the pool (none for most keys). Raises ModelNotAllowed."""
    globs = call.key.models if call.key is not None else ()
    if not globs or allowed(globs, resolution.canonical):
        return ()
    if pool_limited(globs, resolution.canonical, (candidate.spec for candidate in leaves(root))):
        return globs
    raise ModelNotAllowed(f"this key may not use the model {resolution.canonical[:200]!r}", param="model")


def _too_long(call: Call, members: Sequence[Candidate], details: object) -> ContextExceeded:
    needs = call.needs
    windows = [member.facts.limits.context for member in members if member.facts.limits.context is not None]
    needed = max((room_needed(member, needs) for member in members), default=0) if needs is not None else 0
    return ContextExceeded(
        f"This model's maximum context length is {max(windows, default=0)} tokens, "
        f"but the request needs about {needed} tokens. Please reduce the length of the messages.",
        details=details,
    )
