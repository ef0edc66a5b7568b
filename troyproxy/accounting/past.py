"""What the database still knows of attempts, for whoever has just started."""

from __future__ import annotations

from dataclasses import dataclass

from troyproxy.accounting.records import AttemptRecord


@dataclass(frozen=True, slots=True)
class Past:
    """The newest attempts, oldest first, and the instant (unix seconds) from which on they are all there."""

    since: float
    attempts: tuple[AttemptRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class AccountSum:
    """What the requests that one account served came to. What was not known counts 0."""

    provider: str
    account: str
    """Its name."""
    requests: int = 0
    tokens: int = 0
    usd: float = 0.0
