"""What is said when nobody can serve a call: which error, which reasons, and how long to wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from troyproxy.errors import AllUnavailable, ContextExceeded, NoEligibleMember
from troyproxy.ports import Clock
from troyproxy.proxy.accounts import accounts_of
from troyproxy.proxy.call import Call
from troyproxy.proxy.health import HealthKeeper
from troyproxy.resilience.classes import ErrorClass
from troyproxy.routing.eligibility import Skip, SkipReason, room_needed
from troyproxy.routing.members import Candidate

LOCKED: Final = frozenset({SkipReason.CIRCUIT, SkipReason.COOLDOWN})
"""Reasons that pass by themselves."""
OF_THE_REQUEST: Final = frozenset(
    {SkipReason.NO_TOOLS, SkipReason.NO_VISION, SkipReason.NO_JSON, SkipReason.NO_AUDIO, SkipReason.CONTEXT}
)
"""Reasons that speak of what the client asks for."""


class Refusals:
    """Words the refusals of the planner. Touches nothing."""

    def __init__(self, health: HealthKeeper, clock: Clock) -> None:
        self._health, self._clock = health, clock

    def error(self, call: Call, members: Iterable[Candidate], skips: Sequence[Skip]) -> NoEligibleMember:
        """Return the error for a call that nobody can serve, with the reasons."""
        error = self._error(call, members, skips)
        error.quiet = str(error) if isinstance(error, ContextExceeded) else _without_names(call, skips)
        return error

    def _error(self, call: Call, members: Iterable[Candidate], skips: Sequence[Skip]) -> NoEligibleMember:
        details = [_detail(skip) for skip in skips]
        members = list(members)
        told = "; ".join(f"{skip.member}: {self._reason(skip, members)}" for skip in skips[:20]) or "it has no members"
        name = call.resolution.canonical[:200] if call.resolution is not None else ""
        if skips and all(skip.reason is SkipReason.CONTEXT for skip in skips):
            return _too_long(call, members, details)
        locked = [skip for skip in skips if skip.reason in LOCKED]
        if not locked:
            return NoEligibleMember(f"no member of {name!r} can serve this request: {told}", details=details)
        candidates = [member for member in members if any(member.spec == skip.spec for skip in locked)]
        wait_s, limited = self.wait(candidates)
        # A circuit is no rate limit, whatever waits behind it.
        limited = limited and all(skip.reason is SkipReason.COOLDOWN for skip in skips)
        message = f"every member of {name!r} is unavailable for now: {told}"
        return AllUnavailable(message, retry_after_s=max(1.0, wait_s), rate_limited=limited, details=details)

    def wait(self, candidates: Iterable[Candidate]) -> tuple[float, bool]:
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
        mine = (m for m in members if m.spec == skip.spec and skip.account in {None, m.account})
        pairs = (pair for member in mine for pair in self._pairs(member))
        locks = [lock for pair in pairs if (lock := self._health.cooldown(*pair)) is not None]
        return f"{skip.reason} ({min(locks, key=lambda lock: lock.until).error_class})" if locks else str(skip.reason)

    def _pairs(self, candidate: Candidate) -> Iterator[tuple[str, str, str]]:
        provider, model = candidate.provider, candidate.model
        if provider is not None:
            for account in accounts_of(provider, model, candidate.account, self._clock.now()):
                yield provider.id, account.id, model


def _detail(skip: Skip) -> dict[str, str]:
    told = {"member": skip.spec, "reason": str(skip.reason)}
    return told if skip.account is None else {**told, "account": skip.account}


def _without_names(call: Call, skips: Sequence[Skip]) -> str:
    """Return what a client may know that is not told of providers: what its own request lacks, and no more."""
    name = call.resolution.asked[:200] if call.resolution is not None else ""
    lacks = sorted({str(skip.reason) for skip in skips if skip.reason in OF_THE_REQUEST})
    if any(skip.reason in LOCKED for skip in skips):
        return f"the model {name!r} is unavailable for now"
    return f"the model {name!r} cannot serve this request" + (f": {', '.join(lacks)}" if lacks else "")


def _too_long(call: Call, members: Sequence[Candidate], details: object) -> ContextExceeded:
    needs = call.needs
    windows = [member.facts.limits.context for member in members if member.facts.limits.context is not None]
    needed = max((room_needed(member, needs) for member in members), default=0) if needs is not None else 0
    return ContextExceeded(
        f"This model's maximum context length is {max(windows, default=0)} tokens, "
        f"but the request needs about {needed} tokens. Please reduce the length of the messages.",
        details=details,
    )
