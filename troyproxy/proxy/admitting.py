"""Whether one call may go to a candidate now: what it needs, what its key opens, and what health says of the target.

Asked for every member of every plan, so whatever holds for the whole plan is looked up once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from troyproxy.catalog.providers import Account
from troyproxy.proxy.handoff import Relief
from troyproxy.proxy.health import HealthKeeper
from troyproxy.resilience.breaker import Admission
from troyproxy.routing.eligibility import SkipReason, model_name, shortfall
from troyproxy.routing.globs import allowed
from troyproxy.routing.members import Candidate
from troyproxy.routing.needs import Needs

Carriers = Callable[[Candidate], Sequence[Account]]
"""Returns the accounts that may carry a candidate now."""


@dataclass(frozen=True, slots=True)
class Admitting:
    """The filters of one plan. Touches nothing."""

    needs: Needs
    deny_unknown: bool
    relief: Relief | None
    """None: nothing is handed over."""
    globs: Collection[str]
    """What the key limits the pool to; empty for most."""
    vectors: str | None
    """The one model whose vectors are wanted."""
    health: HealthKeeper
    circuits: Collection[tuple[str, str]]
    """Provider and model of each circuit that is not closed now."""
    cooling: Collection[str]
    """Providers of which something is cooling down now."""
    carriers: Carriers

    def reason(self, candidate: Candidate) -> SkipReason | None:
        """Return why *candidate* is left out, or None when it may be tried."""
        if self.vectors is not None and model_name(candidate.model) != self.vectors:
            return SkipReason.MIXED_EMBEDDINGS
        if self.globs and not allowed(tuple(self.globs), candidate.spec):
            return SkipReason.NOT_ALLOWED
        short = shortfall(candidate, self.needs, deny_unknown=self.deny_unknown)
        if short is not None and (self.relief is None or self.relief.after(short, candidate) is not None):
            return short
        return self._locked(candidate)

    def _locked(self, candidate: Candidate) -> SkipReason | None:
        """Why no account of *candidate* may be called now. Soft locks do not bar: the second pass takes them."""
        provider = candidate.provider
        if provider is None:
            return SkipReason.UNKNOWN_PROVIDER
        accounts = self.carriers(candidate)
        if not accounts:
            named = [a for a in provider.accounts if candidate.account in {None, a.name, a.id}]
            off = named and not any(account.active for account in named)
            return SkipReason.DISABLED if off else SkipReason.NO_ACCOUNT
        turned = (provider.id, candidate.model) in self.circuits
        if turned and self.health.admission(provider.id, candidate.model) is Admission.DENY:
            return SkipReason.CIRCUIT
        if provider.id not in self.cooling:
            return None
        locks = [self.health.cooldown(provider.id, account.id, candidate.model) for account in accounts]
        return SkipReason.COOLDOWN if all(lock is not None and not lock.soft for lock in locks) else None
