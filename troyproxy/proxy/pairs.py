"""Which (member, account) pairs one request may still use, and why a member is barred. It asks the health only.

Pass 1 takes what is not cooling and notes what is cooling softly; pass 2 takes only what was noted. A member whose
failure said "never another account" is closed for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from troyproxy.catalog.providers import Account, Provider
from troyproxy.proxy.accounts import accounts_of
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.outcome import Target
from troyproxy.resilience.breaker import Admission
from troyproxy.resilience.classes import ErrorClass, NextStep
from troyproxy.resilience.classify import Failure, Verdict
from troyproxy.resilience.faults import Fault
from troyproxy.routing.eligibility import SkipReason
from troyproxy.routing.members import Candidate

FAULTS: Final = frozenset(Fault) - {Fault.EMPTY, Fault.NOT_A_COMPLETION, Fault.LEAK, Fault.SATURATED, Fault.CANCELLED}
"""Faults that speak of the provider's transport, whichever model was asked."""

Pair = tuple[str, str]


class Pairs:
    """The book of one request over the *candidates* of its plan."""

    def __init__(self, gear: Gear, candidates: Sequence[Candidate]) -> None:
        self._gear, self._candidates = gear, candidates
        self._tried: set[Pair] = set()
        self._left_out: set[Pair] = set()
        self._closed: set[str] = set()
        self._faults: dict[str, int] = {}
        self._window: int | None = None
        """Set once a member's context was too small: only larger known windows may follow."""

    def take(self, target: Target) -> None:
        """The pair of *target* is used up."""
        self._tried.add(_pair(target.candidate, target.account))

    def failed(self, target: Target, failure: Failure, verdict: Verdict) -> None:
        """Draw the conclusions of a failed attempt that concern this request."""
        candidate = target.candidate
        if failure.fault in FAULTS:
            self._faults[target.provider.id] = self._faults.get(target.provider.id, 0) + 1
        if verdict.step is NextStep.NEXT_MEMBER:
            self._closed.add(candidate.member)
        if verdict.error_class is ErrorClass.CONTEXT:
            self._window = max(self._window or 0, candidate.facts.limits.context or 0)

    def barred(self, candidate: Candidate) -> SkipReason | None:
        """Why this request does not go to *candidate* any more, whatever its accounts."""
        provider = candidate.provider
        if provider is None:
            return SkipReason.UNKNOWN_PROVIDER
        if self._faults and self._faults.get(provider.id, 0) >= self._gear.policy.provider_faults:
            return SkipReason.PROVIDER_DOWN
        if self._window is not None and (candidate.facts.limits.context or 0) <= self._window:
            return SkipReason.CONTEXT
        return None

    def close(self, candidate: Candidate) -> None:
        """This request does not go to *candidate* any more."""
        self._closed.add(candidate.member)

    def open(self, candidate: Candidate, provider: Provider, *, second: bool) -> bool:
        """Whether an attempt at *candidate* can begin in this moment."""
        if self._gear.health.admission(provider.id, candidate.model) is Admission.DENY:
            return False
        accounts = self._accounts(candidate, provider)
        return any(self._usable(candidate, provider, account, second=second) for account in accounts)

    def untouched(self, candidate: Candidate) -> bool:
        """Whether no account of *candidate* was tried or noted for the second pass."""
        return all(pair[0] != candidate.spec for pair in self._tried | self._left_out)

    def noted(self, candidate: Candidate) -> bool:
        """Whether the second pass may find an account of *candidate*."""
        return candidate.member not in self._closed and any(
            pair[0] == candidate.spec for pair in self._left_out - self._tried
        )

    def pick(
        self, candidate: Candidate, provider: Provider, accounts: Sequence[Account], *, second: bool, round_robin: bool
    ) -> Account | None:
        """Return the next of the *accounts* of *candidate*; in the first pass what is passed over softly is noted."""

        def usable(account: Account) -> bool:
            if not second and self._soft(candidate, provider, account):
                self._left_out.add(_pair(candidate, account))
                return False
            return self._usable(candidate, provider, account, second=second)

        return self._gear.desk.pick(provider, accounts, usable=usable, round_robin=round_robin)

    def others(self, at: int, *, second: bool, most: int | None = None) -> int:
        """Return how many members but number *at* may still be tried behind it, in this pass or the next.

        Counting ends at *most*; more than a request may try are as good as that many.
        """
        found, most = 0, most or self._gear.policy.max_attempts
        for place, candidate in enumerate(self._candidates):
            if place == at or (second and place < at):
                continue
            found += self._waiting(candidate, noted_only=second or place < at)
            if found >= most:
                break
        return found

    def _waiting(self, candidate: Candidate, *, noted_only: bool) -> bool:
        provider = candidate.provider
        if provider is None or candidate.member in self._closed or self.barred(candidate) is not None:
            return False
        if self._gear.health.admission(provider.id, candidate.model) is Admission.DENY:
            return False
        accounts = self._accounts(candidate, provider)
        return any(
            self._usable(candidate, provider, account, second=noted_only)
            or (not noted_only and self._soft(candidate, provider, account))
            for account in accounts
        )

    def _accounts(self, candidate: Candidate, provider: Provider) -> Sequence[Account]:
        return accounts_of(provider, candidate.model, candidate.account, self._gear.clock.now())

    def _soft(self, candidate: Candidate, provider: Provider, account: Account) -> bool:
        lock = self._gear.health.cooldown(provider.id, account.id, candidate.model)
        return lock is not None and lock.soft and _pair(candidate, account) not in self._tried

    def _usable(self, candidate: Candidate, provider: Provider, account: Account, *, second: bool) -> bool:
        pair = _pair(candidate, account)
        if pair in self._tried or (second and pair not in self._left_out):
            return False
        if candidate.member in self._closed:  # by another account that stands for the same member
            return False
        lock = self._gear.health.cooldown(provider.id, account.id, candidate.model)
        return lock is None or (second and lock.soft)


def somebody_behind(candidates: Sequence[Candidate], at: int, now: float) -> bool:
    """Whether a member behind number *at* can be tried, where nothing was tried before and nothing bars anybody."""
    for candidate in candidates[at + 1 :]:
        provider = candidate.provider
        if provider is not None and accounts_of(provider, candidate.model, candidate.account, now):
            return True
    return False


def _pair(candidate: Candidate, account: Account) -> Pair:
    return candidate.spec, account.id
