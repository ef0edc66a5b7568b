"""What the walk tells the classifier (`Failure`) and what it gets back (`Verdict`).

Holds no rule but one: `Verdict.of` reads the table in ``classes.py``. Both are importable from ``classify.py`` too.
"""

from __future__ import annotations

from dataclasses import dataclass

from troyproxy.resilience.classes import RULES, BreakerEffect, ErrorClass, NextStep, Scope
from troyproxy.resilience.faults import Fault


@dataclass(frozen=True, slots=True)
class Failure:
    """What is known of a failed attempt.

    *body* is as much of the answer as was read (64 KiB are looked at); *in_band* says that it is an error object under
    a 200, or an error event; *body_sent* that the upstream may have the whole request. *model* is the upstream's name.
    """

    status: int | None
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    fault: Fault | None = None
    provider: str = ""
    model: str = ""
    body_sent: bool = False
    in_band: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """A failure's class and what follows from it.

    *hint_s* is set only for classes that cool. *cooldown_s* is the flat time before jitter, None for `rate` and for
    classes that do not cool. *reason* is one line without anything the upstream wrote. *parameter* is the request field
    the upstream rejected, by its own pointer (``param`` or as specific a place), never by text.
    """

    error_class: ErrorClass
    hint_s: float | None
    step: NextStep
    scope: Scope
    soft: bool
    cooldown_s: float | None
    breaker: BreakerEffect
    reason: str
    parameter: str | None

    @classmethod
    def of(cls, error_class: ErrorClass, reason: str, *, hint_s: float | None = None) -> Verdict:
        """Return what the table says of *error_class*; with a *hint_s*, in seconds, the lock is hard."""
        rule = RULES[error_class]
        hint_s = hint_s if rule.cools else None
        soft = rule.soft and hint_s is None
        return cls(error_class, hint_s, rule.walk, rule.scope, soft, rule.cooldown_s, rule.breaker, reason, None)
