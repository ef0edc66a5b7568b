"""One model of one provider, as a plan sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from troyproxy.catalog.models import UNKNOWN, Model
from troyproxy.catalog.providers import Provider


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model of one provider that may serve, perhaps pinned to an account (by name)."""

    spec: str
    provider: Provider | None
    """None: the member names no configured provider."""
    model: str
    """The id to send upstream."""
    facts: Model = UNKNOWN
    account: str | None = None
    weight: float = 1.0
    spread: bool = False
    """One of several that stand for a member without a pinned account (`expansion`)."""
    identity: str = field(init=False, compare=False, repr=False)
    """What a cursor remembers: the spec, and the account if pinned. Asked for so often that it is kept."""

    def __post_init__(self) -> None:
        identity = self.spec if self.account is None else f"{self.spec}#{self.account}"
        object.__setattr__(self, "identity", identity)

    @property
    def member(self) -> str:
        """What is over when a failure forbids another account of the same member."""
        return self.spec if self.spread else self.identity


def candidate_of(provider: Provider, model: str, *, account: str | None = None, weight: float = 1.0) -> Candidate:
    """Return the candidate for *model* (an upstream id) of *provider*."""
    return Candidate(f"{provider.id}/{model}", provider, model, provider.model(model), account, weight)
