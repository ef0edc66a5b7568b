"""What an operator may say about the leak guard, except its mode. Plain values; reading them is not done here."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal


class Strictness(StrEnum):
    """CONFIRM = all rules. MARKERS = seven markers at the start of the content, and no further check."""

    CONFIRM = "confirm"
    MARKERS = "markers"


class Scope(StrEnum):
    """Where a leak is looked for."""

    START = "start"
    ANYWHERE = "anywhere"


class Validate(StrEnum):
    """How much of a tool's schema a repaired call has to meet."""

    OFF = "off"
    REQUIRED = "required"
    FULL = "full"


class Unrepairable(StrEnum):
    """What mode `repair` does with a leak that it cannot repair."""

    FAILOVER = "failover"
    SUPPRESS = "suppress"


class Exhausted(StrEnum):
    """What mode `failover` does when no member is left or output was sent."""

    REPAIR = "repair"
    SUPPRESS = "suppress"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Options:
    """The block `leak:` without `mode`. Bounds are counted in characters of the model's text."""

    strictness: Strictness = Strictness.CONFIRM
    scope: Scope = Scope.ANYWHERE
    formats: frozenset[str] | Literal["all"] = "all"
    """Ids of the formats looked for, such as ``F03``; ``orphan`` and ``extra`` are ids too."""
    extra_openers: tuple[str, ...] = ()
    """More spellings that begin a call; a name (or JSON with one) has to follow, and be a declared one."""
    echo_check: bool = True
    orphan_closers: bool = True
    scrub_when_none: bool = False
    scrub_with_history: bool = False
    coerce: bool = True
    validate: Validate = Validate.REQUIRED
    header_chars: int = 512
    whole_chars: int = 64 * 1024
    call_chars: int = 256 * 1024
    repair_scope: Scope = Scope.START
    repair_exclude: frozenset[str] = field(default_factory=frozenset)
    on_unrepairable: Unrepairable = Unrepairable.FAILOVER
    on_exhausted: Exhausted = Exhausted.SUPPRESS

    def looks_for(self, format_id: str) -> bool:
        """Whether leaks of this format are to be found."""
        return self.formats == "all" or format_id in self.formats
