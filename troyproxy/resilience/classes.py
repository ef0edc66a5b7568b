"""The thirteen classes of failure and, as one table, what each means for the walk, the account and the breaker.

How an answer gets its class is in ``classify.py``; this file only says what follows from the class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class ErrorClass(StrEnum):
    """What kind of failure an attempt ended in. Timeouts are part of `TRANSIENT`."""

    REQUEST = "request"
    MEMBER = "member"
    CONTEXT = "context"
    MODEL = "model"
    AUTH = "auth"
    QUOTA = "quota"
    RATE = "rate"
    OVERLOAD = "overload"
    SHORT = "short"
    TRANSIENT = "transient"
    LEAK = "leak"
    CANCELLED = "cancelled"
    SATURATED = "saturated"


class NextStep(StrEnum):
    """Where the walk goes after a failure."""

    STOP = "stop"
    NEXT_ACCOUNT = "next_account"
    """The next account of this member; when there is none, the next member."""
    NEXT_MEMBER = "next_member"
    """Never another account of this member. For `ErrorClass.CONTEXT` only a member with a larger known window."""


class Scope(StrEnum):
    """What a cooldown locks."""

    NONE = "none"
    PAIR = "pair"
    """One account for one model."""
    ACCOUNT = "account"
    """One account for all models."""
    MODEL = "model"
    """One model on its provider, for all accounts."""


class BreakerEffect(StrEnum):
    """What a failure means to the breaker; a neutral one also gives a half-open probe's lease back."""

    NEUTRAL = "neutral"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table. *cooldown_s* is flat, in seconds; *exponential* rows have none and back off by level."""

    walk: NextStep
    scope: Scope = Scope.NONE
    soft: bool = False
    breaker: BreakerEffect = BreakerEffect.NEUTRAL
    cooldown_s: float | None = None
    exponential: bool = False
    jitter: bool = False

    @property
    def cools(self) -> bool:
        """Whether this class sets a cooldown; if not, a retry hint is ignored."""
        return self.scope is not Scope.NONE


AUTH_S: Final = 120.0
DENIED_S: Final = 30.0
"""A 403 of a web application firewall, a region or a permission refusal: often about the moment, not the key."""
BILLING_S: Final = 1800.0
"""Money does not come back in a minute: 402 and structured billing codes."""
QUOTA_PHRASE_S: Final = 120.0
"""A billing phrase in a message is weaker evidence than a code."""

_PAIR, _FAILURE = Scope.PAIR, BreakerEffect.FAILURE

RULES: Final[Mapping[ErrorClass, Rule]] = MappingProxyType(
    {
        ErrorClass.REQUEST: Rule(NextStep.STOP),
        ErrorClass.MEMBER: Rule(NextStep.NEXT_MEMBER),
        ErrorClass.CONTEXT: Rule(NextStep.NEXT_MEMBER),
        # Soft, so that chains pass a dead model over while a direct request still gets the upstream's own 404.
        ErrorClass.MODEL: Rule(NextStep.NEXT_MEMBER, Scope.MODEL, soft=True, cooldown_s=300.0),
        ErrorClass.AUTH: Rule(NextStep.NEXT_ACCOUNT, Scope.ACCOUNT, cooldown_s=AUTH_S),
        ErrorClass.QUOTA: Rule(NextStep.NEXT_ACCOUNT, Scope.ACCOUNT, cooldown_s=BILLING_S),
        ErrorClass.RATE: Rule(NextStep.NEXT_ACCOUNT, _PAIR, exponential=True, jitter=True),
        ErrorClass.OVERLOAD: Rule(
            NextStep.NEXT_ACCOUNT, _PAIR, soft=True, breaker=_FAILURE, cooldown_s=5.0, jitter=True
        ),
        ErrorClass.SHORT: Rule(NextStep.NEXT_ACCOUNT, _PAIR, soft=True, cooldown_s=5.0),
        ErrorClass.TRANSIENT: Rule(NextStep.NEXT_ACCOUNT, _PAIR, soft=True, breaker=_FAILURE, cooldown_s=2.0),
        ErrorClass.LEAK: Rule(NextStep.NEXT_MEMBER),
        ErrorClass.CANCELLED: Rule(NextStep.STOP),
        ErrorClass.SATURATED: Rule(NextStep.NEXT_ACCOUNT),
    }
)
