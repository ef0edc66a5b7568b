"""The measured inputs of strategies and of the auto engine: taken at every attempt, read when a plan asks.

It joins what `Statistics`, `QuotaDesk` and `HealthKeeper` know of one candidate. A candidate without a pinned account
is read as the combo of its accounts would be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from troyproxy.accounting.finished import Finished, finished_of
from troyproxy.accounting.price import cost_usd
from troyproxy.accounting.records import AttemptRecord
from troyproxy.accounting.usage import Usage
from troyproxy.auto.factors import TRUSTED_FROM, Standing
from troyproxy.catalog.combos import Combo
from troyproxy.catalog.providers import Account
from troyproxy.ports import Clock, Headers
from troyproxy.proxy.accounts import accounts_of
from troyproxy.proxy.call import PASS_THROUGH, MemoryKey
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.outcome import Target
from troyproxy.proxy.quotas import QuotaDesk
from troyproxy.proxy.statistics import Statistics
from troyproxy.resilience.breaker import CircuitState
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.cooldowns import ANY, LockKey
from troyproxy.routing.members import Candidate, Group
from troyproxy.routing.needs import Needs
from troyproxy.routing.readings import UNKNOWN, Read, Reading, reading_of

USUAL_OUTPUT: Final = 1024
"""Tokens of an answer whose length the request does not limit."""
EMBEDDINGS: Final = "/v1/embeddings"
_LEAVES: Final = Combo("", "")

Tell = Callable[[Finished], None]


@dataclass(frozen=True, slots=True)
class Size:
    """How large a request is, as far as it costs money. *output* None: what it costs cannot be told."""

    input: int
    output: int | None

    @classmethod
    def of(cls, needs: Needs, route: str) -> Size:
        """Return the size of a request on *route*."""
        if route in PASS_THROUGH:
            return cls(0, None)
        return cls(needs.est_tokens, 0 if route == EMBEDDINGS else needs.max_output or USUAL_OUTPUT)


class Measuring:
    """Owns what is measured in this process. Nothing here waits."""

    def __init__(self, *, health: HealthKeeper, clock: Clock) -> None:
        self._health, self._clock = health, clock
        self._listeners: list[Tell] = []
        self._of_others: list[Tell] = []
        self.statistics, self.quotas = Statistics(), QuotaDesk()

    @property
    def health(self) -> HealthKeeper:
        """The health that is read."""
        return self._health

    def tell(self, listener: Tell, *, of_others: Tell | None = None) -> None:
        """Tell *listener* of every attempt of our own that has ended, from now on, and *of_others* of theirs."""
        self._listeners.append(listener)
        if of_others is not None:
            self._of_others.append(of_others)

    # --- what happens ---

    def began(self, target: Target) -> None:
        """An attempt begins; `ended` follows, however it ends."""
        provider, account = target.provider.id, target.account.name
        self.statistics.carry((provider, target.candidate.model, account))
        if target.account.quota:  # others are counted at their end: nobody asks before
            self.quotas.begin((provider, account), target.started_at)

    def heard(self, account: Account, headers: Headers) -> None:
        """The head of an answer is there."""
        for name, _ in headers:
            if b"ratelimit" in name or b"codex" in name:  # most say nothing
                self.quotas.hear(account, headers, self._clock.now())
                return

    def ended(
        self, target: Target, record: AttemptRecord, *, whole: bool, remember: tuple[MemoryKey, ...] = ()
    ) -> None:
        """An attempt that began has ended. Not *whole*: it was given up, by the client or by us.

        A good one is remembered under the keys in *remember*.
        """
        candidate = target.candidate
        self.statistics.release((target.provider.id, candidate.model, target.account.name))
        finished = finished_of(record, candidate.facts.price, whole=whole, remember=remember)
        self.statistics.note(finished)
        self.quotas.count(finished, requests=0 if target.account.quota else 1)
        for listener in self._listeners:
            listener(finished)

    def learn(self, heard: Iterable[Finished]) -> None:
        """Take in what other instances tell of their attempts. Their clocks may be ahead of ours."""
        now = self._clock.now()
        for finished in heard:
            if finished.sane:
                known = msgspec.structs.replace(finished, at=min(finished.at, now))
                self.statistics.note(known)
                self.quotas.count(known, requests=1)
                for listener in self._of_others:
                    listener(known)

    # --- what is known ---

    def reader(self, needs: Needs, route: str, now: float) -> Read:
        """Return what takes the readings for one plan."""
        size = Size.of(needs, route)
        return lambda candidate: self.reading(candidate, size, now)

    def reading(self, candidate: Candidate, size: Size, now: float) -> Reading:
        """Return what is known of *candidate* for a request of this *size*."""
        provider, found = candidate.provider, self._accounts(candidate, now)
        if provider is None or not found:
            return UNKNOWN
        half_open = self._health.circuit(provider.id, candidate.model) is CircuitState.HALF_OPEN
        cost = _cost_of(candidate, size)
        by_name = {each.name: self._one(each, candidate.model, now, cost, half_open=half_open) for each in found}
        if len(by_name) == 1:
            return by_name[found[0].name]
        units = tuple(replace(candidate, account=name) for name in by_name)
        return reading_of(Group(_LEAVES, units), lambda each: by_name[each.account or ""])

    def standing(self, candidate: Candidate, now: float) -> Standing:
        """Return the measured part of what `auto` goes by; fitness and tiers are not measured.

        Of several accounts it is the quota of the freest, and the speed and luck of the fastest that is known well.
        """
        provider, found = candidate.provider, self._accounts(candidate, now)
        price = candidate.facts.price
        if provider is None or not found:
            return Standing(input_usd=price.input, output_usd=price.output)
        keys = [(provider.id, candidate.model, account.name) for account in found]
        known = [self.statistics.measures(key, now) for key in keys]
        best = min(known, key=lambda one: (one.samples < TRUSTED_FROM, one.p95_ms is None, one.p95_ms or 0.0))
        left = [self._least(account, now) for account in found]
        return Standing(
            circuit=self._health.circuit(provider.id, candidate.model),
            quota=None if None in left else max(each for each in left if each is not None),
            input_usd=price.input,
            output_usd=price.output,
            samples=best.samples,
            p95_ms=best.p95_ms,
            sigma_ms=best.sigma_ms,
            error_rate=best.error_rate,
        )

    def _accounts(self, candidate: Candidate, now: float) -> Sequence[Account]:
        provider = candidate.provider
        return () if provider is None else accounts_of(provider, candidate.model, candidate.account, now)

    def _one(self, account: Account, model: str, now: float, cost: float | None, *, half_open: bool) -> Reading:
        key = (account.provider, model, account.name)
        measures = self.statistics.measures(key, now)
        recent, last_used_at = self.statistics.use(key, now)
        return Reading(
            inflight=self.statistics.inflight(key),
            recent=recent,
            last_used_at=last_used_at,
            success_rate=measures.success_rate,
            p50_ms=measures.p50_ms,
            half_open=half_open,
            cost_usd=cost,
            quotas=self.quotas.quotas(account, now),
            barred_until=self._barred_until(account.provider, account.id, now),
        )

    def _barred_until(self, provider: str, account: str, now: float) -> float | None:
        """Return until when the account is locked because its upstream said that the quota is gone."""
        lock = self._health.state.cooldowns.get(LockKey(provider, account, ANY, soft=False))
        return lock.until if lock is not None and lock.error_class is ErrorClass.QUOTA and lock.until > now else None

    def _least(self, account: Account, now: float) -> float | None:
        return min((quota.remaining for quota in self.quotas.quotas(account, now)), default=None)


def _cost_of(candidate: Candidate, size: Size) -> float | None:
    """Return what a request of this *size* costs there: estimated input, and the longest answer it may get."""
    if size.output is None:
        return None
    price, cap = candidate.facts.price, candidate.facts.limits.output
    output = size.output if cap is None else min(size.output, cap)
    return cost_usd(Usage(size.input, output), price.input, price.output, price.cached)
